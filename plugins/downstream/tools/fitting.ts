import type { ValueMemory } from '../../base/body/index.ts'
import { errors } from '../../base/errors/index.ts'
import { jsonPieces } from '../../base/json-schema/index.ts'
import { turns } from '../../base/limits/index.ts'
import type { ToolInput } from './tool-input.ts'

/** Other readings of arguments that are tried where the first one does not fit. */
const mostReadings = 20
/** Characters of large arguments that are written in one step. */
const writtenAtOnce = 64 * 1024

/** Arguments as the tool takes them. @throws InvalidInput that names those that do not fit */
export function fitting (input: ToolInput, given: Record<string, unknown>): Record<string, unknown> {
  const steps = stepsToFit(input, given)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** The params of a call with large arguments, made in turns of its caller, and their text. @throws InvalidInput, ShareError */
export async function fittingInTurns (
  input: ToolInput | undefined, name: string, given: Record<string, unknown>, owner: string, values: ValueMemory
): Promise<{ params: Record<string, unknown>, text: string }> {
  return await turns.run(owner, async (wait) => {
    const pause = async (): Promise<void> => {
      await wait()
      values.mustBeWanted()
    }
    let args = given
    if (input) {
      const steps = stepsToFit(input, given)
      for (let step = steps.next(); ; step = steps.next()) {
        await pause()
        if (step.done !== true) continue
        args = step.value
        break
      }
    }
    const params = { name, arguments: args }
    let [text, written] = ['', 0]
    for (const piece of jsonPieces(params)) {
      text += piece
      if (text.length - written < writtenAtOnce) continue
      written = text.length
      await pause()
    }
    return { params, text }
  })
}

/** Reads and checks arguments, step by step. @returns arguments as the tool takes them @throws InvalidInput */
function * stepsToFit (
  { read, check, isLargeToCheck }: ToolInput, given: Record<string, unknown>
): Generator<undefined, Record<string, unknown>> {
  let args = read(given, false)
  yield
  let problems = check(args)
  if (problems.length === 0) return args
  yield
  // A text that a pattern or a length keeps out may be the number that fits. Of large arguments that would take too long.
  const others = isLargeToCheck(given) ? [] : Object.entries(read(given, true)).filter(([name, value]) => value !== args[name])
  for (const other of others.slice(0, mostReadings)) {
    yield
    const tried = Object.fromEntries([...Object.entries(args), other])
    const left = check(tried)
    if (left.length < problems.length) { args = tried; problems = left }
  }
  if (problems.length > 0) throw new errors.InvalidInput(`The arguments do not fit: ${problems.slice(0, 10).join('; ')}`)
  return args
}
