import { errors } from '../../base/errors/index.ts'
import type { ToolInput } from './tool-input.ts'

/** Other readings of arguments that are tried where the first one does not fit. */
const mostReadings = 20

/** Arguments as the tool takes them. @throws InvalidInput that names those that do not fit */
export function fitting ({ read, check, isLargeToCheck }: ToolInput, given: Record<string, unknown>): Record<string, unknown> {
  let args = read(given, false)
  let problems = check(args)
  if (problems.length === 0) return args
  // A text that a pattern or a length keeps out may be the number that fits. Of large arguments that would take too long.
  const others = isLargeToCheck(given) ? [] : Object.entries(read(given, true)).filter(([name, value]) => value !== args[name])
  for (const other of others.slice(0, mostReadings)) {
      const tried = Object.fromEntries([...Object.entries(args), other])
    const left = check(tried)
    if (left.length < problems.length) { args = tried; problems = left }
  }
  if (problems.length > 0) throw new errors.InvalidInput(`The arguments do not fit: ${problems.slice(0, 10).join('; ')}`)
  return args
}
