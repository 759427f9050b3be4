import { isObject } from '../../../../protocol/json.ts'
import { bodyFormatOf } from '../media-types.ts'
import type { BodyField, Serialization, Style } from '../plan.ts'
import type { References } from './refs.ts'

const isStyle = (value: unknown): value is Style =>
  ['form', 'spaceDelimited', 'pipeDelimited', 'tabDelimited', 'deepObject'].includes(value as string)

/**
 * A field of a form.
 * @param encoding the Encoding Object of the property, where there is one
 */
export function formFieldOf (name: string, schema: unknown, encoding: unknown, refs: References): BodyField {
  const field: BodyField = { name }
  const encodingObject = isObject(encoding) ? encoding : {}
  const { contentType, delimiter } = encodingObject
  if (typeof contentType === 'string' && !contentType.includes('*')) field.contentType = contentType.split(',', 1)[0]?.trim()
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

/** undefined where the Encoding Object states no serialization. */
function serializationOf ({ style: givenStyle, explode, allowReserved }: Record<string, unknown>): Serialization | undefined {
  if (givenStyle === undefined && explode === undefined && allowReserved === undefined) return undefined
  const style = isStyle(givenStyle) ? givenStyle : 'form'
  const serialization: Serialization = {
    style,
    explode: style === 'deepObject' || (typeof explode === 'boolean' ? explode : style === 'form')
  }
  if (allowReserved === true) serialization.allowReserved = true
  return serialization
}
