// A store in a process of its own (in another namespace, under strace), driven by JSON lines: `{do, …}` in, one answer a line out.
import { createInterface } from 'node:readline'
import { JsonFileStore } from '../../db/json/file.ts'
import { ConflictError, InvalidChangeError, StorageError, type Change, type Snapshot } from '../../db/store.ts'

const [path = ''] = process.argv.slice(2)
const warnings: string[] = []
const store = new JsonFileStore(path, (sentence) => { warnings.push(sentence) })
let snapshot: Snapshot | undefined
store.onChange((next) => { snapshot = next })

const commands: Record<string, (changes: Change[]) => unknown> = {
  load: async () => { snapshot = await store.load() },
  commit: async (changes) => { snapshot = await store.commit(changes, snapshot?.version ?? 0) },
  state: () => {},
  close: async () => { await store.close() }
}

createInterface(process.stdin).on('line', (line) => {
  const { do: name, changes = [] } = JSON.parse(line) as { do: string, changes?: Change[] }
  void Promise.resolve().then(async () => await commands[name]?.(changes)).then(() => ({}), (error: unknown) => ({
    error: error instanceof Error ? error.name : 'unknown',
    message: String(error),
    ...(error instanceof StorageError ? { full: error.isFull } : {}),
    ...(error instanceof ConflictError ? { edited: error.isFileEdit } : {}),
    ...(error instanceof InvalidChangeError ? { invalid: true } : {})
  })).then((answer) => {
    const servers = snapshot && Object.fromEntries([...snapshot.servers].map(([key, { config }]) => [key, config.description ?? '']))
    const { version, problems } = snapshot ?? {}
    const full = { ...answer, servers, version, problems, health: store.health() ?? null, warnings }
    process.stdout.write(`${JSON.stringify(full)}\n`)
  })
})
process.stdout.write('ready\n')
