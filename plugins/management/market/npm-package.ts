import type { MarketEntry } from '../../../schemas/catalogues.ts'

/** The npm package that an entry installs: the first argument of npx that is no option; undefined: it installs none. */
export function packageOf ({ installations: { npm } }: MarketEntry): string | undefined {
  const name = npm?.args?.find((arg) => !arg.startsWith('-'))
  // Without a version: `@scope/name@1.2.3`.
  return name?.replace(/(?<=.)@[^/]*$/, '')
}
