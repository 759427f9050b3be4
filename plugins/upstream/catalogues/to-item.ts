import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { isObject, memberOf, membersOf, parseSmallMember, withMembers } from '../../../protocol/json.ts'
import { withoutAnyDuplicates } from '../../../protocol/json-ambiguity.ts'
import { type Item, type ListKind, listKinds } from '../../../protocol/lists.ts'
import { toLegacyTool } from '../../../protocol/modern/for-legacy-clients.ts'
import { itemShapes } from '../../../protocol/message-shapes.ts'
import { mend } from '../../../protocol/mending.ts'
import { latestModernVersion } from '../../../protocol/modern/envelope.ts'
import { truncate } from '../../../protocol/text.ts'
import { firstSchemaProblem } from '../../../schemas/problem.ts'
import { upstreamLimits } from '../limits.ts'

/** Receives remarks about single items. */
interface ItemRemarks {
  /** Called with a sentence when an item is omitted: for all clients, or only for clients of earlier revisions. */
  readonly warn: (sentence: string) => void
  /**
   * Called when an invalid member of an item is treated as absent.
   * @param name the name or URI of the item
   * @param place the path of the member within the item
   */
  readonly mended: (name: string, place: string) => void
}

/**
 * Characters that are invisible in a name, or change how other characters are shown: control, bidirectional and tag
 * characters.
 */
const invisibleCharacters = /[\p{Cc}\p{Bidi_Control}\u{e0000}-\u{e007f}]/gu

/** Items longer than this, in characters, are not parsed as a whole. */
const largeItem = 16 * 1024

/**
 * Parses only the members of a large item that `toItem` reads. Of `inputSchema` and `outputSchema`, parses only `type`.
 */
function parseMembers (text: string, key: string, kind: ListKind): Record<string, unknown> {
  const names = new Set([key, ...checkedMembers(kind)])
  const members: Record<string, unknown> = {}
  for (const { key: name, start, end } of membersOf(text)) {
    if (!names.has(name)) continue
    const isSchema = (name === 'inputSchema' || name === 'outputSchema') && text[start] === '{'
    members[name] =
      isSchema ? { type: parseSmallMember(text.slice(start, end), 'type') } : JSON.parse(text.slice(start, end))
  }
  return members
}

/**
 * Converts an item from a server's list to the form in which it is stored.
 * @param written the server's JSON text
 * @returns undefined if the item is omitted
 */
export function toItem (written: string, kind: ListKind, remarks: ItemRemarks): Item | undefined {
  const { key } = listKinds[kind]
  const { warn } = remarks
  if (written.length > upstreamLimits.itemSize) {
    const name = parseSmallMember(written, key)
    const which = typeof name === 'string' ? JSON.stringify(truncate(name, 200)) : 'an item'
    warn(`${which} is larger than ${upstreamLimits.itemSize} characters and was omitted`)
    return undefined
  }
  const shape = itemShapes[kind]
  // Pins and the scan of definitions read the last of two members; clients may read the first. The values of members
  // that MCP does not define, and of `_meta`, stay as they are.
  const isDefined = (name: string): boolean => name !== '_meta' && Object.hasOwn(shape.members ?? {}, name)
  const unambiguous = withoutAnyDuplicates(written, isDefined)
  const { text, places } = mend(unambiguous, shape)
  const value: unknown = text.length > largeItem ? parseMembers(text, key, kind) : JSON.parse(text)
  if (!isObject(value) || typeof value[key] !== 'string' || value[key] === '') {
    warn(`an item without ${JSON.stringify(key)} was omitted`)
    return undefined
  }
  const name = value[key]
  // A name with invisible characters may look like another name, and may break log lines.
  const visible = key === 'name' ? name.replace(invisibleCharacters, '\u{fffd}') : name
  if (visible !== name) {
    warn(`${JSON.stringify(visible)} has control characters in its name and was omitted`)
    return undefined
  }
  const changes: Record<string, string> = {}
  // A resource without the required name gets its URI as its name, which is for display only.
  if (value.name === undefined && checkedMembers(kind).includes('name')) {
    changes.name = JSON.stringify(name)
    value.name = name
  }
  const { description, inputSchema } = value
  if (kind === 'tools' && !isObject(inputSchema)) {
    warn(`${JSON.stringify(name)} has no inputSchema and was omitted`)
    return undefined
  }
  const problem = itemProblem(kind, value)
  if (problem !== undefined) {
    warn(`${JSON.stringify(truncate(name, 200))} was omitted: ${problem}`)
    return undefined
  }
  if (typeof description === 'string' && description.length > upstreamLimits.description) {
    changes.description = JSON.stringify(truncate(description, upstreamLimits.description))
  }
  // MCP requires the type `object`; servers that omit it mean an object, too.
  if (isObject(inputSchema) && inputSchema.type === undefined) {
    changes.inputSchema = withMembers(memberOf(text, 'inputSchema') ?? '{}', { type: '"object"' })
  }
  const item = { key: name, text: Object.keys(changes).length === 0 ? text : withMembers(text, changes) }
  if (kind === 'tools' && toLegacyTool(item.text) === undefined) {
    warn(`${JSON.stringify(name)} was omitted for clients of revisions before ${latestModernVersion}, which do not ` +
      'support its inputSchema')
  }
  if (unambiguous !== written) {
    warn(`${JSON.stringify(truncate(name, 200))} has members that occur twice, of which only the last are used`)
  }
  if (places[0] !== undefined) remarks.mended(name, places[0])
  return item
}

// What follows are MCP's rules for the members of items, common to all revisions. Items are checked because strict
// clients reject a whole list if one item is invalid. Unknown members, and values that MCP does not restrict, are not
// checked.

const optionalMembers = <Schema extends TSchema>(members: Record<string, Schema>): TObject =>
  Type.Object(Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)])))
const text = Type.String()
const flag = Type.Boolean()
const object = Type.Object({})
const oneOf = (...values: string[]): TSchema => Type.Union(values.map((value) => Type.Literal(value)), { enum: values })

const icon = Type.Composite([
  Type.Object({ src: text }),
  optionalMembers<TSchema>({ mimeType: text, sizes: Type.Array(text), theme: oneOf('light', 'dark') })
])
const describedMembers = { title: text, description: text, icons: Type.Array(icon), _meta: object }
const annotations = optionalMembers<TSchema>({
  audience: Type.Array(oneOf('user', 'assistant')),
  priority: Type.Number({ minimum: 0, maximum: 1 }),
  lastModified: text
})
const resource =
  Type.Composite(
    [Type.Object({ name: text }), optionalMembers<TSchema>({ ...describedMembers, mimeType: text, annotations })]
  )
const argument =
  Type.Composite(
    [Type.Object({ name: text }), optionalMembers<TSchema>({ title: text, description: text, required: flag })]
  )

const schemas: Readonly<Record<ListKind, TObject>> = {
  tools: Type.Composite([
    Type.Object({ inputSchema: optionalMembers({ type: Type.Literal('object') }) }),
    optionalMembers<TSchema>({
      ...describedMembers,
      outputSchema: object,
      annotations: optionalMembers<TSchema>(
        { title: text, readOnlyHint: flag, destructiveHint: flag, idempotentHint: flag, openWorldHint: flag }
      ),
      execution: optionalMembers({ taskSupport: oneOf('forbidden', 'optional', 'required') })
    })
  ]),
  prompts: optionalMembers<TSchema>({ ...describedMembers, arguments: Type.Array(argument) }),
  resources: Type.Composite([resource, optionalMembers({ size: Type.Number() })]),
  resourceTemplates: resource,
  skills: Type.Object({
    frontmatter: Type.Object({ name: text, description: text }),
    resources: Type.Union([
      Type.Literal('dynamic'), Type.Array(Type.Object({ uri: text, digest: text, size: Type.Number() }))
    ])
  }),
  events: optionalMembers<TSchema>({ ...describedMembers, delivery: Type.Array(text) })
}
const itemChecks =
  Object.fromEntries(Object.entries(schemas).map(([kind, schema]) => [kind, TypeCompiler.Compile(schema)]))

const checkedMembers = (kind: ListKind): readonly string[] => Object.keys(schemas[kind].properties)

/** Returns the problem of an item, as a clause; undefined if it is valid. @param item with at least `checkedMembers` */
function itemProblem (kind: ListKind, item: Readonly<Record<string, unknown>>): string | undefined {
  if (itemChecks[kind]?.Check(item) === true) return undefined
  const { path, message } = firstSchemaProblem(schemas[kind], item) ?? { path: '', message: 'it is not valid' }
  return path === '' ? message : `${JSON.stringify(path)}: ${message}`
}
