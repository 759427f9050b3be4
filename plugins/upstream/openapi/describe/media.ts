import { isObject } from '../../../../protocol/json.ts'
import { isJsonMediaType } from '../call/body.ts'
import type { JsonSchema } from './keywords.ts'
import type { ArgumentNames } from './names.ts'
import type { RequestBody, FormField, Style, Serialization } from '../plan.ts'
import type { References } from './refs.ts'
import type { SchemaConverter } from './schema.ts'

type Dict = Record<string, unknown>

/** The arguments that make a body: their schemas, which of them are required, and whether others will do. */
export interface DescribedBody {
  body: RequestBody
  properties: Array<[string, JsonSchema]>
  required: string[]
  open: JsonSchema | boolean
}

/** The members of an object's schema, as they are written; undefined: it is no object whose members could stand for it. */
interface Members { properties: Map<string, unknown>, required: Set<string>, open: unknown }

/** How values of a media type are written. */
export const bodyFormatOf = (type: string): RequestBody['format'] => {
  const plain = type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (isJsonMediaType(plain) || plain === '*/*') return 'json'
  if (plain === 'application/x-www-form-urlencoded') return 'urlencoded'
  if (plain.startsWith('multipart/')) return 'multipart'
  return /^text\/|[/+](xml|yaml|x-yaml|graphql|javascript|x-ndjson)$/.test(plain) ? 'text' : 'binary'
}

/** The media types that a body may have, the most useful first. */
const preference: ReadonlyArray<(type: string) => boolean> = [
  (type) => /^application\/json\b/i.test(type),
  isJsonMediaType,
  (type) => type === '*/*',
  ...(['urlencoded', 'multipart', 'text'] as const).map((form) => (type: string) => bodyFormatOf(type) === form),
  () => true
]

/**
 * A request body as arguments: the fields of an object beside the parameters where no name is taken, else the whole as `body`.
 * @param requestBody with its own reference resolved
 */
export function describeBody (
  requestBody: Dict,
  names: ArgumentNames,
  refs: References,
  schemas: SchemaConverter
): DescribedBody | undefined {
  const content = isObject(requestBody.content) ? requestBody.content : {}
  const types = Object.keys(content)
  const type = preference.map((prefers) => types.find(prefers)).find((each) => each !== undefined)
  if (type === undefined) return undefined
  const media = refs.resolveObject(content[type]) ?? {}
  const form = type === '*/*' && isBytes(media.schema, refs) ? 'binary' : bodyFormatOf(type)
  const isRequired = requestBody.required === true
  const body: RequestBody = {
    contentType: type.includes('*') ? (form === 'json' ? 'application/json' : 'application/octet-stream') : type,
    format: form,
    fields: []
  }
  if (isRequired) body.required = true
  if (form === 'binary' && type.includes('*')) body.anyContentType = true
  const members = form === 'text' || form === 'binary' ? undefined : membersOf(media.schema, refs)
  if (form === 'urlencoded' || form === 'multipart') {
    const encodings = isObject(media.encoding) ? media.encoding : {}
    body.fields = [...(members?.properties ?? [])].map(([name, schema]) =>
      fieldOf(name, schema, Object.hasOwn(encodings, name) ? encodings[name] : undefined, refs)
    )
  }
  if (!members || members.properties.size === 0 || [...members.properties.keys()].some((name) => names.has(name))) {
    return whole(body, requestBody, media, names, schemas)
  }
  if (form === 'json') body.fields = [...members.properties.keys()].map((name) => ({ name }))
  for (const field of body.fields) if (members.required.has(field.name)) field.required = true
  const binary = new Set(body.fields.flatMap((field) => (field.binary ? [field.name] : [])))
  const isOpen = members.open === true || isObject(members.open)
  if (isOpen) body.additionalFields = true
  return {
    body,
    properties: [...members.properties].map(([name, schema]) => [
      names.assign(name, 'body'),
      binary.has(name) ? asBytes(schemas.convert(schema)) : schemas.convert(schema)
    ]),
    required: isRequired ? [...members.required].filter((name) => members.properties.has(name)) : [],
    open: isOpen ? schemas.convert(members.open) : false
  }
}

/** What an argument that is bytes says of itself. */
const bytesSaid = 'Bytes in base64, or a data: address'

/** The schema of a field, or of each of its elements, whose values are bytes. */
function asBytes (schema: JsonSchema): JsonSchema {
  if (isObject(schema.items)) return { ...schema, items: asBytes(schema.items) }
  const { format, ...rest } = schema
  return {
    ...rest,
    ...(format === undefined || format === 'binary' ? {} : { format }),
    contentEncoding: 'base64',
    description: schema.description ?? bytesSaid
  }
}

function whole (body: RequestBody, { description }: Dict, media: Dict, names: ArgumentNames, schemas: SchemaConverter): DescribedBody {
  body.argument = names.assign('body', 'request')
  const schema: JsonSchema =
    body.format === 'text'
      ? { type: 'string' }
      : body.format === 'binary'
        ? { type: 'string', contentEncoding: 'base64', contentMediaType: body.contentType }
        : schemas.convert(media.schema)
  const said = typeof description === 'string' ? description : body.format === 'binary' ? bytesSaid : undefined
  return {
    body,
    properties: [[body.argument, said === undefined ? schema : { ...schema, description: said }]],
    required: body.required ? [body.argument] : [],
    open: false
  }
}

/** Whether a schema says that it is bytes: OpenAPI 3.0's way, 3.1's, or Swagger's. */
function isBytes (schema: unknown, refs: References): boolean {
  const { type, format, contentEncoding, contentMediaType } = refs.resolveObject(schema) ?? {}
  return (
    type === 'file' ||
    (type === 'string' &&
      (format === 'binary' ||
        contentEncoding === 'base64' ||
        (typeof contentMediaType === 'string' && bodyFormatOf(contentMediaType) === 'binary')))
  )
}

/** How deep `allOf` may stand in `allOf`. */
const deepest = 16

function membersOf (schema: unknown, refs: References, depth = 0): Members | undefined {
  const value = refs.resolveObject(schema)
  if (!value || depth > deepest) return undefined
  const { type, properties, required, additionalProperties, allOf } = value
  if (type !== undefined && type !== 'object') return undefined
  if (
    ['oneOf', 'anyOf', 'not', 'if', 'patternProperties', 'propertyNames', 'unevaluatedProperties', '$dynamicRef'].some(
      (key) => value[key] !== undefined
    )
  ) {
    return undefined
  }
  const members: Members = { properties: new Map(), required: new Set(), open: additionalProperties }
  const add = (name: string, each: unknown): void => {
    const before = members.properties.get(name)
    members.properties.set(name, before === undefined ? each : { allOf: [before, each] })
  }
  for (const part of Array.isArray(allOf) ? allOf : []) {
    const inner = membersOf(part, refs, depth + 1)
    if (!inner) return undefined
    for (const [name, each] of inner.properties) add(name, each)
    for (const name of inner.required) members.required.add(name)
    members.open ??= inner.open
  }
  if (isObject(properties)) {
    for (const [name, each] of Object.entries(properties)) {
      if (!isObject(each) && typeof each !== 'boolean') continue
      if (refs.resolveObject(each)?.readOnly === true) continue
      add(name, each)
    }
  }
  for (const name of Array.isArray(required) ? required : []) if (typeof name === 'string') members.required.add(name)
  return members
}

const isStyle = (value: unknown): value is Style =>
  ['form', 'spaceDelimited', 'pipeDelimited', 'tabDelimited', 'deepObject'].includes(value as string)

/** How a form's field is written (OpenAPI, "Encoding Object"). */
function fieldOf (name: string, schema: unknown, encoding: unknown, refs: References): FormField {
  const field: FormField = { name }
  const { contentType, style, explode, allowReserved, delimiter } = isObject(encoding) ? encoding : {}
  if (typeof contentType === 'string' && !contentType.includes('*')) field.contentType = contentType.split(',', 1)[0]?.trim()
  if (style !== undefined || explode !== undefined || allowReserved !== undefined) {
    const known = isStyle(style) ? style : 'form'
    const writing: Serialization = {
      style: known,
      explode: known === 'deepObject' || (typeof explode === 'boolean' ? explode : known === 'form')
    }
    field.serialization = allowReserved === true ? { ...writing, allowReserved: true } : writing
  }
  if (typeof delimiter === 'string') field.delimiter = delimiter
  const own = refs.resolveObject(schema) ?? {}
  const value = own.type === 'array' ? refs.resolveObject(own.items) ?? {} : own
  const media =
    field.contentType ??
    (typeof value.contentMediaType === 'string' && value.contentEncoding === undefined ? value.contentMediaType : undefined)
  const isText = value.type !== undefined && value.type !== 'string' && value.type !== 'file'
  if (value.type === 'file' || value.format === 'binary' || (!isText && media !== undefined && bodyFormatOf(media) === 'binary')) {
    field.binary = true
  }
  if (field.binary && field.contentType === undefined && media !== undefined) field.contentType = media
  return field
}
