import { createHash } from 'node:crypto'
import { isObject } from '../../protocol/json.ts'
import { shapeOf } from '../json-schema/input-shape.ts'
import { isScalar } from '../json-schema/schema-types.ts'
import type { Item } from '../upstream/catalogues/catalogue.ts'
import type { JsonObject } from './keywords.ts'
import { SchemaTranslator } from './translate.ts'

/** A tool as an operation, without what depends on the document that it stands in. */
export interface Operation {
  readonly method: 'get' | 'post'
  /** Below the API's base: percent-encoded. */
  readonly path: string
  readonly summary: string
  readonly description: string | undefined
  /** Its parameters or its body. */
  readonly input: JsonObject
  readonly components: ReadonlyMap<string, JsonObject>
}

/** A tool with more parameters takes them as a body. */
const mostParameters = 10
/** One part of a path, in characters: an address must fit in the head of a request. */
const longestPart = 4_096

/** A tool as an operation; undefined where no address can name it. Pure. */
export function toOperation (server: string, { key, text }: Item): Operation | undefined {
  const parts = [server, key].map(encoded)
  if (parts.includes(undefined)) return undefined
  const tool = JSON.parse(text) as { title?: unknown, description?: unknown, inputSchema?: unknown, annotations?: unknown }
  const title = tool.title ?? (isObject(tool.annotations) ? tool.annotations.title : undefined)
  const translation = new SchemaTranslator(tool.inputSchema, [server, key].map(inName).join('.'))
  const parameters = parametersOf(tool.inputSchema, translation)
  return {
    method: parameters ? 'get' : 'post',
    path: `/tools/${parts.join('/')}`,
    summary: typeof title === 'string' && title !== '' ? title : key,
    description: typeof tool.description === 'string' ? tool.description : undefined,
    input: parameters
      ? { parameters }
      : { requestBody: { required: true, content: { 'application/json': { schema: bodyOf(tool.inputSchema, translation) } } } },
    components: translation.components
  }
}

/** A name as one part of a path. `.` and `..` would be resolved away, half of a surrogate pair cannot be written. */
function encoded (name: string): string | undefined {
  if (name === '.' || name === '..') return undefined
  try {
    const part = encodeURIComponent(name)
    return part.length > longestPart ? undefined : part
  } catch {
    return undefined
  }
}

/** The query parameters of a tool with at most ten, each a single value (SPEC); undefined: it takes a body. */
function parametersOf (schema: unknown, translation: SchemaTranslator): JsonObject[] | undefined {
  // Most that take a body are told by this, without looking further.
  if (isObject(schema) && isObject(schema.properties) && !Object.values(schema.properties).every((each) => isScalar(each, schema))) {
    return undefined
  }
  const { properties, required, isComplete: listable } = shapeOf(schema)
  if (!listable || properties.size > mostParameters || ![...properties.values()].every((each) => isScalar(each, schema))) return undefined
  return Array.from(properties, ([name, property]) => toParameter(name, required.has(name), translation.translate(property).schema))
}

function toParameter (name: string, required: boolean, { description, ...schema }: JsonObject): JsonObject {
  return description === undefined ? { name, in: 'query', required, schema } : { name, in: 'query', required, description, schema }
}

function bodyOf (schema: unknown, translation: SchemaTranslator): JsonObject {
  const said = translation.translate(schema).schema
  // Arguments are an object always.
  return said.type === undefined && said.$ref === undefined ? { type: 'object', ...said } : said
}

export const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** A name as a part of a component's: with a hash where letters had to be replaced, so that different names stay different. */
function inName (name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)
  return plain === name ? plain : `${plain}_${shortHash(name)}`
}
