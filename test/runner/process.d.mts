interface Options {
  cwd: string
  env?: Record<string, string>
  silence?: number
  limit?: number
  onOutput?: (text: string) => void
}
export function runProcess (command: string, args: string[], options: Options): Promise<{ code: number | null, ended?: string, errors: string }>
export function inSlots (slots: number, tasks: Array<() => Promise<unknown>>): Promise<void>
