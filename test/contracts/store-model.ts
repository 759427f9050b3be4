import assert from 'node:assert/strict'
import fc from 'fast-check'
import { foldUsername } from '../../db/invariants.ts'
import { ConflictError, InvalidChangeError, type Change, type Snapshot } from '../../db/store.ts'
import type { BuiltInPrompt, BuiltInResource } from '../../schemas/builtins.ts'
import type { BearerKey, Group, SystemConfig, User } from '../../schemas/settings.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { Opened } from './store.ts'

/** What a store should hold, in the plainest way. */
interface Model {
  servers: Map<string, ServerConfig>
  groups: Map<string, Group>
  keys: Map<string, BearerKey>
  users: Map<string, User>
  prompts: Map<string, BuiltInPrompt>
  resources: Map<string, BuiltInResource>
  system: SystemConfig
}

type Command =
  { do: 'commit'; changes: Change[] } | { do: 'stale'; changes: Change[] } | { do: 'elsewhere'; changes: Change[] } | { do: 'reopen' }

const names = ['one', 'two', 'Three', 'ﬀ', 'FF', 'straße', 'STRASSE', '__proto__', 'constructor', 'ключ', 'a b', '']
const name = fc.constantFrom(...names)
const text = fc.string({ unit: 'binary', maxLength: 8 })
const config: fc.Arbitrary<ServerConfig> = fc.record(
  { command: text, description: text, enabled: fc.boolean(), env: fc.dictionary(fc.constantFrom('A', '__proto__', 'toString'), text) },
  { requiredKeys: [] }
)
const members = fc.array(
  fc.oneof(name, fc.record({ name: fc.constantFrom('one', 'two'), tools: fc.constantFrom<'all' | string[]>('all', ['x', 'y']) })),
  { maxLength: 4 }
)
const removable = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> => fc.option(value, { nil: undefined })
/** Changes of one entry under any name: a value that the name is a part of, or none. */
const entries = (weight: number, entity: string, value: (key: string) => fc.Arbitrary<unknown>): fc.WeightedArbitrary<Change> => ({
  weight,
  arbitrary: name.chain((key) => removable(value(key)).map((value) => ({ entity, key, value }) as Change))
})
const argument = fc.record({ name, required: fc.boolean() }, { requiredKeys: ['name'] })
const change: fc.Arbitrary<Change> = fc.oneof(
  entries(4, 'mcpServers', () => config),
  { weight: 2, arbitrary: fc.record({ entity: fc.constant('mcpServers' as const), key: name, value: config, rename: name }) },
  entries(2, 'groups', (key) => fc.record({ id: fc.constant(key), name, servers: members })),
  entries(2, 'bearerKeys', (key) => fc.record({ id: fc.constant(key), name: text, allowedServers: fc.array(name, { maxLength: 3 }) })),
  entries(3, 'users', (key) => fc.record({ username: fc.constant(key), isAdmin: fc.boolean() })),
  entries(2, 'prompts', (key) => fc.record({
    id: fc.constant(key), name, template: text, arguments: fc.array(argument, { maxLength: 2 }), enabled: fc.boolean()
  }, { requiredKeys: ['id', 'name', 'template'] })),
  entries(2, 'resources', (key) => fc.record({ id: fc.constant(key), uri: name, content: text, mimeType: text }, {
    requiredKeys: ['id', 'uri', 'content']
  })),
  {
    weight: 1,
    arbitrary: fc.record({
      entity: fc.constant('systemConfig' as const),
      value: fc.record({ nameSeparator: fc.constantFrom('-', '__', ' '), enableSessionRebuild: fc.boolean() }, { requiredKeys: [] })
    })
  }
)
const changes = fc.array(change, { minLength: 1, maxLength: 3 })
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 20, arbitrary: changes.map((changes): Command => ({ do: 'commit', changes })) },
  { weight: 2, arbitrary: changes.map((changes): Command => ({ do: 'stale', changes })) },
  { weight: 1, arbitrary: changes.map((changes): Command => ({ do: 'elsewhere', changes })) },
  { weight: 1, arbitrary: fc.constant<Command>({ do: 'reopen' }) }
)

const copy = (model: Model): Model => structuredClone(model)

/** Whether all names in a change are names. */
function isReadable (change: Change): boolean {
  switch (change.entity) {
    case 'groups': return change.value?.name !== ''
    case 'prompts': return change.value?.name !== '' && change.value?.arguments?.some(({ name }) => name === '') !== true
    case 'resources': return change.value?.uri !== ''
    default: return true
  }
}

/** The model after a change; undefined: it must be refused. */
function changed (model: Model, all: readonly Change[]): Model | undefined {
  const next = copy(model)
  for (const change of all) {
    if (change.entity === 'systemConfig') { if (change.value.nameSeparator === ' ') return undefined; next.system = change.value; continue }
    if (change.entity === 'mcpServers') {
      const { key, value, rename = key } = change
      if (change.rename === '') return undefined
      if (value === undefined) { next.servers.delete(key); continue }
      if (rename === key) { next.servers.set(key, value); continue }
      if (!next.servers.has(key) || next.servers.has(rename)) return undefined
      next.servers = new Map([...next.servers].map(([name, config]) => name === key ? [rename, value] : [name, config]))
      for (const group of next.groups.values()) {
        group.servers = group.servers.map((member) =>
          typeof member === 'string' ? (member === key ? rename : member) : { ...member, name: member.name === key ? rename : member.name }
        )
      }
      for (const entry of next.keys.values()) {
        entry.allowedServers = (entry.allowedServers ?? []).map((each) => (each === key ? rename : each))
      }
      continue
    }
    // The commands reorder nothing.
    if (change.entity === 'order') continue
    if (change.value !== undefined && (change.key === '' || !isReadable(change))) return undefined
    const { entity, key, value } = change
    const { users, groups, keys: bearerKeys, prompts, resources } = next
    // The commands change no other entity.
    const sections: Partial<Record<typeof entity, Map<string, unknown>>> = { users, groups, bearerKeys, prompts, resources }
    const section = sections[entity]
    if (value === undefined) section?.delete(key)
    else section?.set(key, structuredClone(value))
  }
  const isUnique = (list: string[]): boolean => new Set(list).size === list.length
  const admins = ({ users }: Model): number => [...users.values()].filter(({ isAdmin }) => isAdmin).length
  const holds =
    isUnique([...next.users.keys()].map(foldUsername)) && isUnique([...next.groups.values()].map(({ name }) => name)) &&
    (admins(model) === 0 || admins(next) > 0)
  return holds ? next : undefined
}

/** Both in one form: as JSON says them, in order. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const lists = ({ keys, users, prompts, resources, system }: Snapshot | Model): object => ({
  keys: [...keys], users: [...users], prompts: [...prompts], resources: [...resources], system
})
const told = (snapshot: Snapshot): unknown => plain({
  ...lists(snapshot),
  servers: [...snapshot.servers.values()].map(({ name, config }) => [name, config]),
  groups: [...snapshot.groups.values()]
})
const expected = (model: Model): unknown => plain({
  ...lists(model),
  servers: [...model.servers],
  groups: [...model.groups.values()].map(({ servers, ...group }) => ({
    ...group,
    members: servers.map((member) => (typeof member === 'string' ? { name: member } : member))
  }))
})

/** One random sequence of commands on a new store, compared with the model after each; what was answered. */
async function follow (commands: readonly Command[], opened: Opened): Promise<string[]> {
  const answers: string[] = []
  let model: Model = {
    servers: new Map(),
    groups: new Map(),
    keys: new Map(),
    users: new Map(),
    prompts: new Map(),
    resources: new Map(),
    system: {}
  }
  let store = opened.store
  let snapshot = await store.load()
  for (const command of commands) {
    if (command.do === 'reopen') {
      store = await opened.reopen()
      snapshot = await store.load()
    } else if (command.do === 'stale') {
      await assert.rejects(store.commit(command.changes, snapshot.version - 1), ConflictError)
    } else if (command.do === 'elsewhere') {
      const next = changed(model, command.changes)
      if (!next) continue
      model = next
      await opened.elsewhere(command.changes)
      snapshot = await store.load()
    } else {
      const next = changed(model, command.changes)
      const result = await store.commit(command.changes, snapshot.version).catch((error: unknown) => error)
      answers.push(result instanceof Error ? String(result) : 'done')
      if (next === undefined) assert.ok(result instanceof InvalidChangeError, `accepted, or refused in another way: ${String(result)}`)
      else if (result instanceof Error) throw result
      else snapshot = result as Snapshot
      model = next ?? model
    }
    assert.deepEqual(told(snapshot), expected(model))
    assert.deepEqual(told(await store.load()), expected(model))
  }
  return answers
}

/**
 * So many random commands, in sequences of 75, each on a store of its own.
 * @param seed to run the same ones again
 * @returns the answers, the same for every kind of store
 */
export async function modelRun (
  commands: number,
  seed: number,
  open: () => Promise<{ opened: Opened; end: () => Promise<void> }>
): Promise<string[][]> {
  const answers: string[][] = []
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 75, maxLength: 75 }), async (sequence) => {
      const { opened, end } = await open()
      try {
        answers.push(await follow(sequence, opened))
      } finally {
        await end()
      }
    }),
    { numRuns: Math.ceil(commands / 75), seed, endOnFailure: commands > 300 }
  )
  return answers
}
