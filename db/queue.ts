/** One task at a time, in the order they came. A task that fails does not stop the next. */
export class Queue {
  #last: Promise<unknown> = Promise.resolve()

  async add<Result> (task: () => Promise<Result>): Promise<Result> {
    const run = this.#last.then(task)
    this.#last = run.catch(() => {})
    return await run
  }
}
