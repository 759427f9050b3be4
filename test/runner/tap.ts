import { t } from 'tap'

/** The subtest of the file that is being loaded or run. */
let current: typeof t = t
const begun: Array<PromiseLike<unknown>> = []

/** `test` of tap for a file in a batch: a test of the file, which is itself one subtest of the batch. */
export const test: typeof t.test = ((...args: Parameters<typeof t.test>) => {
  const done = current.test(...args)
  begun.push(done)
  return done
}) as typeof t.test

export const before: typeof t.before = (...args) => { current.before(...args) }

/** `t` of tap: what is registered with it is done after the file's tests. */
const forFile = { after: (step: () => unknown) => { current.after(step) } }
export { forFile as t }

/**
 * Loads a test file and waits for its tests, as one subtest with the file's name.
 * @param load imports the file
 */
export async function runFile (name: string, load: () => Promise<unknown>): Promise<void> {
  await t.test(name, async (file) => {
    current = file as typeof t
    await load()
    if (begun.length === 0) throw new Error('The file has no test')
    for (let done = begun.shift(); done !== undefined; done = begun.shift()) await done
  })
}
