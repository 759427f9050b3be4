import { isObject } from '../../../../protocol/json.ts'
import { bodyFormatOf, isJsonMediaType } from '../http-syntax.ts'
import type { BodyField, RequestBody, Serialization, SerializationStyle } from '../plan.ts'
import type { JsonSchema } from './keywords.ts'
import { type ArgumentNames, descriptionWithRequestName } from './names.ts'
import { setInnerDelimiters } from './parameters.ts'
import type { ReferenceResolver } from './refs.ts'
import type { SchemaConverter } from './schema.ts'

type Dict = Record<string, unknown>

/** A request body, and the arguments for it as members of the tool's input schema. */
interface DescribedBody {
  body: RequestBody
  properties: Array<[string, JsonSchema]>
  required: string[]
  additionalProperties: JsonSchema | boolean
}

/**
 * Tests for the media types of a request body, in order of preference. A type that passes the first test is preferred.
 */
const preferences: ReadonlyArray<(mediaType: string) => boolean> = [
  (mediaType) => /^application\/json\b/i.test(mediaType),
  isJsonMediaType,
  (mediaType) => mediaType === '*/*',
  ...(['urlencoded', 'multipart', 'text'] as const).map((format) =>
    (mediaType: string) => bodyFormatOf(mediaType) === format),
  () => true
]

/**
 * Determines the arguments for a request body: one for each property, if the body is an object and no parameter uses
 * the name of a property; otherwise a single argument `body`.
 * @param requestBody the Request Body Object, with its reference resolved
 * @returns undefined if the body has no media type
 */
export function describeBody (
  requestBody: Dict,
  names: ArgumentNames,
  refs: ReferenceResolver,
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
  if (!members || memberNames.length === 0 ||
      memberNames.some((name) => names.has(names.plainName({ name, location: 'body' })))) {
    return describeWhole(body, requestBody, schema, names, schemas)
  }
  return describeFields(body, members, names, schemas)
}

/** Returns the media type to send. @param mediaType the media type in the description, which may contain wildcards */
function contentTypeOf (mediaType: string, format: RequestBody['format']): string {
  if (!mediaType.includes('*')) return mediaType
  return format === 'json' ? 'application/json' : 'application/octet-stream'
}

/** Describes a body whose properties are separate arguments. */
function describeFields (
  body: RequestBody, members: Members, names: ArgumentNames, schemas: SchemaConverter
): DescribedBody {
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
      const description =
        descriptionWithRequestName(
          typeof schema.description === 'string' ? schema.description : undefined, name, argument
        )
      return [argument, description === undefined ? schema : { ...schema, description }]
    }),
    required: body.required ? [...required].flatMap((name) => argumentNames.get(name) ?? []) : [],
    additionalProperties: isOpen ? schemas.convert(additionalProperties) : false
  }
}

/** Describes a body that is a single argument. */
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
  else if (body.format === 'binary') {
    converted =
    { type: 'string', contentEncoding: 'base64', contentMediaType: body.contentType }
  } else converted = schemas.convert(schema)
  if (typeof description === 'string') converted = { ...converted, description }
  else if (body.format === 'binary') converted = { ...converted, description: bytesDescription }
  return {
    body,
    properties: [[body.argument, converted]],
    required: body.required ? [body.argument] : [],
    additionalProperties: false
  }
}

const bytesDescription = 'Bytes in base64, or a data: address'

/** Returns the schema of an argument in base64, for a field whose value, or whose elements, are bytes. */
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

/** Whether a schema describes bytes, in the notation of Swagger 2.0, OpenAPI 3.0 or 3.1. */
function isBytes (schema: unknown, refs: ReferenceResolver): boolean {
  const { type, format, contentEncoding, contentMediaType } = refs.resolveObject(schema) ?? {}
  if (type === 'file') return true
  if (type !== 'string') return false
  if (format === 'binary' || contentEncoding === 'base64') return true
  return typeof contentMediaType === 'string' && bodyFormatOf(contentMediaType) === 'binary'
}

const isStyle = (value: unknown): value is SerializationStyle =>
  ['form', 'spaceDelimited', 'pipeDelimited', 'tabDelimited', 'deepObject'].includes(value as string)

/** Returns the plan for a field of a form. @param encoding the Encoding Object of the property; undefined if none */
function formFieldOf (name: string, schema: unknown, encoding: unknown, refs: ReferenceResolver): BodyField {
  const field: BodyField = { name }
  const encodingObject = isObject(encoding) ? encoding : {}
  const { contentType, delimiter } = encodingObject
  if (typeof contentType === 'string' && !contentType.includes('*')) {
    field.contentType = contentType.split(',', 1)[0]?.trim()
  }
  const serialization = serializationOf(encodingObject)
  if (serialization) field.serialization = serialization
  if (typeof delimiter === 'string') field.delimiter = delimiter
  const fieldSchema = refs.resolveObject(schema) ?? {}
  const { type, format, contentMediaType, contentEncoding } =
    fieldSchema.type === 'array' ? refs.resolveObject(fieldSchema.items) ?? {} : fieldSchema
  const stated = typeof contentMediaType === 'string' && contentEncoding === undefined ? contentMediaType : undefined
  const mediaType = field.contentType ?? stated
  const mayBeBytes = type === undefined || type === 'string' || type === 'file'
  const isBinaryType = mediaType !== undefined && bodyFormatOf(mediaType) === 'binary'
  if (type === 'file' || format === 'binary' || (mayBeBytes && isBinaryType)) {
    field.binary = true
    if (mediaType !== undefined) field.contentType ??= mediaType
  }
  return field
}

/** Returns the serialization that an Encoding Object states; undefined if it states none. */
function serializationOf (encoding: Record<string, unknown>): Serialization | undefined {
  const { style: givenStyle, explode, allowReserved } = encoding
  if (givenStyle === undefined && explode === undefined && allowReserved === undefined) return undefined
  const style = isStyle(givenStyle) ? givenStyle : 'form'
  const serialization: Serialization = {
    style,
    explode: style === 'deepObject' || (typeof explode === 'boolean' ? explode : style === 'form')
  }
  if (allowReserved === true) serialization.allowReserved = true
  setInnerDelimiters(serialization, encoding)
  return serialization
}

/** The properties of an object schema, with their original schemas. */
interface Members {
  properties: Map<string, unknown>
  required: Set<string>
  additionalProperties: unknown
}

/** Max nesting of `allOf`. */
const maxDepth = 16

/** Keywords with which an object is not completely described by a list of properties. */
const conditionalKeywords = [
  'oneOf', 'anyOf', 'not', 'if', 'patternProperties', 'propertyNames', 'unevaluatedProperties', '$dynamicRef'
]

/**
 * Returns the properties of an object schema, including those of its `allOf`, but without `readOnly` ones.
 * @returns undefined if the schema does not describe an object, or a list of properties does not describe it completely
 */
function schemaMembers (schema: unknown, refs: ReferenceResolver, depth = 0): Members | undefined {
  const object = refs.resolveObject(schema)
  if (!object || depth > maxDepth) return undefined
  const { type, properties, required, additionalProperties, allOf } = object
  if (type !== undefined && type !== 'object') return undefined
  if (conditionalKeywords.some((keyword) => object[keyword] !== undefined)) return undefined
  const members: Members = { properties: new Map(), required: new Set(), additionalProperties }
  for (const part of Array.isArray(allOf) ? allOf : []) {
    const inner = schemaMembers(part, refs, depth + 1)
    if (!inner) return undefined
    for (const [name, property] of inner.properties) addProperty(members, name, property)
    for (const name of inner.required) members.required.add(name)
    members.additionalProperties ??= inner.additionalProperties
  }
  for (const [name, property] of isObject(properties) ? Object.entries(properties) : []) {
    const isSchema = isObject(property) || typeof property === 'boolean'
    if (isSchema && refs.resolveObject(property)?.readOnly !== true) addProperty(members, name, property)
  }
  for (const name of Array.isArray(required) ? required : []) if (typeof name === 'string') members.required.add(name)
  return members
}

/** Adds a property. If the property was added before, its value must match both schemas. */
function addProperty ({ properties }: Members, name: string, property: unknown): void {
  const existing = properties.get(name)
  properties.set(name, existing === undefined ? property : { allOf: [existing, property] })
}
