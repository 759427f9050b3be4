import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { toLegacyTool } from '../../../protocol/modern/for-legacy-clients.ts'
import type { Item, ListKind } from '../../../protocol/lists.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { ListResult, ListEntry } from '../../gateway/index.ts'
import { isValidPattern, resolvePointer } from '../../base/json-schema/index.ts'

/**
 * Cache of the legacy form of items, since items are kept longer than lists. `legacy`: the text for legacy clients,
 * undefined if the item must be omitted; `text`: the text from which it was made.
 */
const legacyItems = new WeakMap<Item, { readonly text: string, readonly legacy: string | undefined }>()

/**
 * Converts a list to one that legacy clients accept: many of them reject a whole list because of one invalid item. The
 * result is cached for each list.
 */
export const toLegacyList = memoized(async (list: ListResult): Promise<ListResult> => {
  const budget = new LoopBudget()
  const entries: ListEntry[] = []
  let isSame = true
  for (const entry of list.entries) {
    const legacy = toLegacyEntry(list.kind, entry)
    if (legacy !== undefined) entries.push(legacy)
    isSame &&= legacy === entry
    if (budget.isSpent) await budget.yieldToEventLoop()
  }
  return isSame ? list : list.withEntries(entries)
})

/** Returns an entry of a list in its legacy form; undefined if it must be omitted. */
function toLegacyEntry (kind: ListKind, entry: ListEntry): ListEntry | undefined {
  const { text, item } = entry
  if (!item) return entry
  const known = legacyItems.get(item)
  const legacy = known?.text === text ? known.legacy : toLegacyItem(kind, text)
  if (known?.text !== text) legacyItems.set(item, { text, legacy })
  return legacy === text ? entry : legacy === undefined ? undefined : { ...entry, text: legacy }
}

function toLegacyItem (kind: ListKind, text: string): string | undefined {
  switch (kind) {
    case 'tools': return withoutBadOutputSchema(toLegacyTool(text))
    case 'resources': case 'resourceTemplates': return withoutBadTime(text)
    case 'prompts': case 'skills': case 'events': return text
  }
}

/** Removes an `outputSchema` that legacy clients cannot compile. The clients can then still list and call the tool. */
function withoutBadOutputSchema (text: string | undefined): string | undefined {
  const output = text === undefined ? undefined : memberOf(text, 'outputSchema')
  if (text === undefined || output === undefined || isCompilableSchema(JSON.parse(output))) return text
  return withMembers(text, { outputSchema: undefined })
}

/** Matches ISO 8601 with time and zone, which legacy SDKs require in `lastModified`. MCP allows all of ISO 8601. */
const isoTime = new RegExp([
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])/,
  /T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/
].map(({ source }) => source).join(''))

/** Removes the annotation `lastModified` if legacy clients cannot parse it. */
function withoutBadTime (text: string): string {
  const annotations = text.includes('"lastModified"') ? memberOf(text, 'annotations') : undefined
  if (annotations === undefined) return text
  const value: unknown = JSON.parse(annotations)
  if (!isObject(value) || typeof value.lastModified !== 'string' || isoTime.test(value.lastModified)) return text
  return withMembers(text, { annotations: withMembers(annotations, { lastModified: undefined }) })
}

const jsonTypes = new Set<unknown>(['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'])
/** The keywords whose values are objects with schemas as members. */
const schemaMapKeywords = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']
/** The keywords whose values are lists of schemas. */
const schemaListKeywords = ['allOf', 'anyOf', 'oneOf', 'prefixItems']
/** The keywords whose values are single schemas. */
const schemaValueKeywords = [
  'additionalProperties', 'additionalItems', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'
]

const isNumber = (value: unknown): boolean => typeof value === 'number'
const isText = (value: unknown): boolean => typeof value === 'string'
const isBoolean = (value: unknown): boolean => typeof value === 'boolean'
/** The checks that Ajv makes of the values of keywords. Earlier drafts and OpenAPI 3.0 allow other values. */
const valueChecks = new Map<string, (value: unknown) => boolean>([
  ...[
    'maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum', 'multipleOf', 'maxLength', 'minLength', 'maxItems',
    'minItems', 'maxProperties', 'minProperties'
  ].map((keyword) => [keyword, isNumber] as const),
  ...['pattern', 'format', '$ref'].map((keyword) => [keyword, isText] as const),
  ...['uniqueItems', 'nullable'].map((keyword) => [keyword, isBoolean] as const),
  ...['required', 'anyOf', 'allOf', 'oneOf'].map((keyword) => [keyword, Array.isArray] as const),
  ...['properties', 'patternProperties', 'dependencies'].map((keyword) => [keyword, isObject] as const),
  ['enum', (value) => Array.isArray(value) && value.length > 0],
  // Ajv rejects a second schema with the same `$id`, and any schema with `id`, which replaces `$id` in draft 4.
  ['$id', () => false],
  ['id', () => false]
])

/**
 * Whether Ajv can compile a schema if it does not validate the schema against the meta-schema. Legacy SDKs compile the
 * `outputSchema` of every listed tool in this way, and reject the whole list if one fails.
 * @param root the whole schema, for resolving references
 */
export function isCompilableSchema (schema: unknown, root: unknown = schema): boolean {
  if (typeof schema === 'boolean') return true
  if (!isObject(schema)) return false
  const { type, nullable, pattern, patternProperties, $ref, items, dependencies } = schema
  if (!Object.entries(schema).every(([keyword, value]) => valueChecks.get(keyword)?.(value) ?? true)) return false
  if (type !== undefined && ![type].flat().every((each) => jsonTypes.has(each))) return false
  if (nullable !== undefined && (type === undefined || (nullable === false && [type].flat().includes('null')))) {
    return false
  }
  if (typeof pattern === 'string' && !isValidPattern(pattern)) return false
  if (isObject(patternProperties) && !Object.keys(patternProperties).every(isValidPattern)) return false
  if (typeof $ref === 'string' && $ref !== '#' && resolvePointer(root, $ref) === undefined) return false
  const subschemas = [
    ...schemaMapKeywords.flatMap((keyword) => isObject(schema[keyword]) ? Object.values(schema[keyword]) : []),
    ...schemaListKeywords.flatMap((keyword) => schema[keyword] ?? []),
    ...schemaValueKeywords.flatMap((keyword) => schema[keyword] === undefined ? [] : [schema[keyword]]),
    ...items === undefined ? [] : [items].flat(),
    // A list names the properties that a property needs.
    ...isObject(dependencies) ? Object.values(dependencies).filter((each) => !Array.isArray(each)) : []
  ]
  return subschemas.every((each) => isCompilableSchema(each, root))
}
