import { createHash } from 'node:crypto'
import { isObject } from '../../../protocol/json.ts'
import { isScalarSchema, inputShapeOf } from '../../base/json-schema/index.ts'
import type { Item } from '../../../protocol/lists.ts'
import type { JsonObject } from './keywords.ts'
import { SchemaTranslator } from './translate.ts'

/** A tool as an operation, without the parts that depend on the document. */
export interface Operation {
  readonly method: 'get' | 'post'
  /** The path relative to the base URL of the API, percent-encoded. */
  readonly path: string
  readonly summary: string
  readonly description: string | undefined
  /** The member `parameters` or `requestBody`. */
  readonly input: JsonObject
  readonly components: ReadonlyMap<string, JsonObject>
}

/** Max number of query parameters. A tool with more parameters takes a body. */
const maxParameters = 10
/** Max length of one path segment, in characters, so that the URL fits into the head of a request. */
const maxSegmentLength = 4_096

/** Converts a tool to an operation; returns undefined if no URL can contain the names of the tool and its server. */
export function toOperation (server: string, { key, text }: Item): Operation | undefined {
  const segments = [server, key].map(pathSegment)
  if (segments.includes(undefined)) return undefined
  const tool =
    JSON.parse(text) as { title?: unknown, description?: unknown, inputSchema?: unknown, annotations?: unknown }
  const title = tool.title ?? (isObject(tool.annotations) ? tool.annotations.title : undefined)
  const translator = new SchemaTranslator(tool.inputSchema, [server, key].map(componentNamePart).join('.'))
  const parameters = parametersOf(tool.inputSchema, translator)
  return {
    method: parameters ? 'get' : 'post',
    path: `/tools/${segments.join('/')}`,
    summary: typeof title === 'string' && title !== '' ? title : key,
    description: typeof tool.description === 'string' ? tool.description : undefined,
    input: parameters
      ? { parameters }
      : {
          requestBody: {
            required: true, content: { 'application/json': { schema: bodyOf(tool.inputSchema, translator) } }
          }
        },
    components: translator.components
  }
}

/**
 * Encodes a name as a path segment; returns undefined for `.` and `..`, which would be resolved, for names with lone
 * surrogates, and for names that are too long.
 */
function pathSegment (name: string): string | undefined {
  if (name === '.' || name === '..') return undefined
  try {
    const segment = encodeURIComponent(name)
    return segment.length > maxSegmentLength ? undefined : segment
  } catch {
    return undefined
  }
}

/**
 * Returns the query parameters of a tool with at most `maxParameters` parameters, all of which are scalar; undefined
 * for other tools, which take a body.
 */
function parametersOf (schema: unknown, translator: SchemaTranslator): JsonObject[] | undefined {
  // A quick check that is sufficient for most tools that take a body.
  if (isObject(schema) && isObject(schema.properties) &&
      !Object.values(schema.properties).every((each) => isScalarSchema(each, schema))) {
    return undefined
  }
  const { properties, required, isComplete } = inputShapeOf(schema)
  if (!isComplete || properties.size > maxParameters ||
    ![...properties.values()].every((each) => isScalarSchema(each, schema))) return undefined
  return Array.from(properties, ([name, property]) =>
    toParameter(name, required.has(name), translator.translate(property).schema))
}

function toParameter (name: string, required: boolean, { description, ...schema }: JsonObject): JsonObject {
  return description === undefined
    ? { name, in: 'query', required, schema }
    : { name, in: 'query', required, description, schema }
}

function bodyOf (schema: unknown, translator: SchemaTranslator): JsonObject {
  const translated = translator.translate(schema).schema
  // The arguments of a tool are an object, even if the schema does not say so.
  const isTyped = translated.type !== undefined || translated.$ref !== undefined
  return isTyped ? translated : { type: 'object', ...translated }
}

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** Converts a name to a part of a component name. If the name is changed, a hash keeps different names distinct. */
function componentNamePart (name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)
  return plain === name ? plain : `${plain}_${shortHash(name)}`
}
