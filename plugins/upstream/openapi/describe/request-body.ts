import { isObject } from '../../../../protocol/json.ts'
import { bodyFormatOf, isJsonMediaType } from '../media-types.ts'
import type { RequestBody } from '../plan.ts'
import { formFieldOf } from './form-field.ts'
import type { JsonSchema } from './keywords.ts'
import { schemaMembers, type Members } from './members.ts'
import { described, type ArgumentNames } from './names.ts'
import type { References } from './refs.ts'
import type { SchemaConverter } from './schema.ts'

type Dict = Record<string, unknown>

/** A request body, and its arguments as the members of an object schema. */
interface DescribedBody {
  body: RequestBody
  properties: Array<[string, JsonSchema]>
  required: string[]
  additionalProperties: JsonSchema | boolean
}

/** Conditions on the media type of a body; the first one that a media type fulfils chooses it. */
const preferences: ReadonlyArray<(mediaType: string) => boolean> = [
  (mediaType) => /^application\/json\b/i.test(mediaType),
  isJsonMediaType,
  (mediaType) => mediaType === '*/*',
  ...(['urlencoded', 'multipart', 'text'] as const).map((format) => (mediaType: string) => bodyFormatOf(mediaType) === format),
  () => true
]

/**
 * The arguments of a request body: the properties of an object beside the parameters, where none of the names is assigned already;
 * else the whole body as the argument `body`.
 * @param requestBody with its reference resolved
 * @returns undefined where the body has no media type
 */
export function describeBody (
  requestBody: Dict,
  names: ArgumentNames,
  refs: References,
  schemas: SchemaConverter
): DescribedBody | undefined {
  const content = isObject(requestBody.content) ? requestBody.content : {}
  const mediaTypes = Object.keys(content)
  const mediaType = preferences.map((isPreferred) => mediaTypes.find(isPreferred)).find((each) => each !== undefined)
  if (mediaType === undefined) return undefined
  const mediaTypeObject = refs.resolveObject(content[mediaType]) ?? {}
  const { schema } = mediaTypeObject
  const format = mediaType === '*/*' && isBytes(schema, refs) ? 'binary' : bodyFormatOf(mediaType)
  const body: RequestBody = { contentType: contentTypeOf(mediaType, format), format, fields: [] }
  if (requestBody.required === true) body.required = true
  if (format === 'binary' && mediaType.includes('*')) body.anyContentType = true
  const members = format === 'text' || format === 'binary' ? undefined : schemaMembers(schema, refs)
  if (format === 'urlencoded' || format === 'multipart') {
    const encodings = isObject(mediaTypeObject.encoding) ? mediaTypeObject.encoding : {}
    body.fields = [...(members?.properties ?? [])].map(([name, property]) =>
      formFieldOf(name, property, Object.hasOwn(encodings, name) ? encodings[name] : undefined, refs)
    )
  }
  const memberNames = [...(members?.properties.keys() ?? [])]
  names.expect(memberNames)
  if (!members || memberNames.length === 0 || memberNames.some((name) => names.has(names.plainName({ name, location: 'body' })))) {
    return describeWhole(body, requestBody, schema, names, schemas)
  }
  return describeFields(body, members, names, schemas)
}

/** The media type that is sent for a media type range, which may have wildcards. */
function contentTypeOf (mediaType: string, format: RequestBody['format']): string {
  if (!mediaType.includes('*')) return mediaType
  return format === 'json' ? 'application/json' : 'application/octet-stream'
}

/** A body whose properties are arguments. */
function describeFields (body: RequestBody, members: Members, names: ArgumentNames, schemas: SchemaConverter): DescribedBody {
  const { properties, required, additionalProperties } = members
  if (body.format === 'json') body.fields = [...properties.keys()].map((name) => ({ name }))
  const argumentNames = new Map([...properties.keys()].map((name) => [name, names.assign({ name, location: 'body' })]))
  for (const field of body.fields) {
    if (required.has(field.name)) field.required = true
    const argument = argumentNames.get(field.name)
    if (argument !== field.name) field.argument = argument
  }
  const binaryFields = new Set(body.fields.filter(({ binary }) => binary).map(({ name }) => name))
  const isOpen = additionalProperties === true || isObject(additionalProperties)
  if (isOpen) body.additionalFields = true
  return {
    body,
    properties: [...properties].map(([name, property]) => {
      const converted = schemas.convert(property)
      const schema = binaryFields.has(name) ? asBytes(converted) : converted
      const argument = argumentNames.get(name) ?? name
      const description = described(typeof schema.description === 'string' ? schema.description : undefined, name, argument)
      return [argument, description === undefined ? schema : { ...schema, description }]
    }),
    required: body.required ? [...required].flatMap((name) => argumentNames.get(name) ?? []) : [],
    additionalProperties: isOpen ? schemas.convert(additionalProperties) : false
  }
}

/** A body that is one argument. */
function describeWhole (
  body: RequestBody,
  { description }: Dict,
  schema: unknown,
  names: ArgumentNames,
  schemas: SchemaConverter
): DescribedBody {
  body.argument = names.assign({ name: 'body', location: 'request' })
  let converted: JsonSchema
  if (body.format === 'text') converted = { type: 'string' }
  else if (body.format === 'binary') converted = { type: 'string', contentEncoding: 'base64', contentMediaType: body.contentType }
  else converted = schemas.convert(schema)
  if (typeof description === 'string') converted = { ...converted, description }
  else if (body.format === 'binary') converted = { ...converted, description: bytesDescription }
  return {
    body,
    properties: [[body.argument, converted]],
    required: body.required ? [body.argument] : [],
    additionalProperties: false
  }
}

/** The description of an argument that is bytes. */
const bytesDescription = 'Bytes in base64, or a data: address'

/** The schema of a field whose values, or the elements of whose values, are bytes. */
function asBytes (schema: JsonSchema): JsonSchema {
  if (isObject(schema.items)) return { ...schema, items: asBytes(schema.items) }
  const { format, ...rest } = schema
  return {
    ...rest,
    ...(format === undefined || format === 'binary' ? {} : { format }),
    contentEncoding: 'base64',
    description: schema.description ?? bytesDescription
  }
}

/** Whether a schema is that of bytes, as Swagger, OpenAPI 3.0 or 3.1 express it. */
function isBytes (schema: unknown, refs: References): boolean {
  const { type, format, contentEncoding, contentMediaType } = refs.resolveObject(schema) ?? {}
  if (type === 'file') return true
  if (type !== 'string') return false
  if (format === 'binary' || contentEncoding === 'base64') return true
  return typeof contentMediaType === 'string' && bodyFormatOf(contentMediaType) === 'binary'
}
