import type { TaskRecord, Tasks } from '../ports/tasks.ts'
import { recordCollections, type Records } from '../records.ts'
import { userLabel } from './labels.ts'

const { tasks } = recordCollections

/** Tasks as records. */
export class RecordedTasks implements Tasks {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async put (task: TaskRecord, lifetime: number): Promise<void> {
    const { id, owner, username, createdAt } = task
    const labels = username === undefined ? [] : [userLabel(username)]
    await this.#records.put(tasks, [
      { key: id, value: { ...task }, owner, labels, at: createdAt, expiresIn: lifetime }
    ])
  }

  async find (id: string): Promise<TaskRecord | undefined> {
    return (await this.#records.find(tasks, id))?.value as TaskRecord | undefined
  }

  async list (of?: { readonly owner: string } | { readonly username: string }): Promise<TaskRecord[]> {
    const which = of !== undefined && 'username' in of ? { labels: [userLabel(of.username)] } : of ?? {}
    const found = await this.#records.list(tasks, which)
    return found.flatMap(({ value }) => value === undefined ? [] : [value as TaskRecord])
  }

  async remove (id: string): Promise<void> { await this.#records.remove(tasks, id) }
}
