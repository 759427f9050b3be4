import { randomBytes } from 'node:crypto'
import { elementsOf, toOneLine } from '../../../../protocol/json.ts'
import { percentDecode } from '../../../../protocol/text.ts'
import { isJsonMediaType } from '../http-syntax.ts'
import type { BodyField, RequestBody } from '../plan.ts'
import { ArgumentError } from '../plan.ts'
import { memberJsonTexts, toNameValuePairs, percentEncode, toPlainText } from './values.ts'

/** The bytes of a request body, and its `content-type`. */
interface EncodedBody { contentType: string, bytes: Buffer }

/**
 * Encodes a request body.
 * @param given the arguments for the body, as JSON texts by the names of its fields (or by `body.argument`)
 * @returns undefined if the request has no body
 * @throws ArgumentError
 */
export function encodeBody (body: RequestBody, given: ReadonlyMap<string, string>): EncodedBody | undefined {
  const { argument, contentType } = body
  const whole = argument === undefined ? undefined : given.get(argument)
  const isAbsent = argument === undefined ? given.size === 0 && !body.required : whole === undefined
  if (isAbsent) return undefined
  switch (body.format) {
    case 'json':
      return { contentType, bytes: Buffer.from(toOneLine(whole ?? toObjectText(given))) }
    case 'text':
      return { contentType, bytes: Buffer.from(toPlainText(whole ?? '""')) }
    case 'binary': {
      const { bytes, contentType: stated } = decodeBytes(argument ?? 'body', whole ?? '""')
      return { contentType: body.anyContentType ? (stated ?? contentType) : contentType, bytes }
    }
    case 'urlencoded': {
      const pairs = fieldsOf(body, whole, given).flatMap(([field, text]) => urlencodedPairs(field, text))
      return { contentType, bytes: Buffer.from(pairs.join('&')) }
    }
    case 'multipart':
      return encodeMultipart(body, fieldsOf(body, whole, given))
  }
}

const toObjectText = (given: ReadonlyMap<string, string>): string =>
  `{${[...given].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`

/**
 * Returns the fields of a form, with their values as JSON texts. null values are omitted.
 * @param whole the argument for the whole body as JSON text; undefined if each field is an argument
 */
function fieldsOf (
  body: RequestBody, whole: string | undefined, given: ReadonlyMap<string, string>
): Array<[BodyField, string]> {
  if (whole !== undefined && !whole.startsWith('{')) {
    throw new ArgumentError(`"${body.argument}" must be an object: its members are the form's fields`)
  }
  const declared = new Map(body.fields.map((field) => [field.name, field]))
  return [...(whole === undefined ? given : memberJsonTexts(whole))]
    .filter(([, text]) => text !== 'null')
    .map(([name, text]) => [declared.get(name) ?? { name }, text])
}

/**
 * Returns the `name=value` pairs of one field. If the description states no serialization, an array results in a pair
 * for each element, and an object is sent as JSON (OpenAPI, "Encoding Object").
 */
function urlencodedPairs ({ name, serialization, contentType }: BodyField, text: string): string[] {
  if (serialization) return toNameValuePairs(name, serialization, text)
  if (text.startsWith('{') || (contentType !== undefined && isJsonMediaType(contentType))) {
    return [`${percentEncode(name)}=${percentEncode(toOneLine(text))}`]
  }
  return toNameValuePairs(name, { style: 'form', explode: true }, text)
}

/** Encodes a multipart form (RFC 7578). */
function encodeMultipart (body: RequestBody, fields: Array<[BodyField, string]>): EncodedBody {
  const boundary = `----${randomBytes(18).toString('hex')}`
  const chunks: Buffer[] = []
  const addPart = (field: BodyField, text: string): void => {
    const { bytes, contentType, filename } = partOf(field, text)
    const disposition = `Content-Disposition: form-data; name=${quote(field.name)}`
    const lines = [`--${boundary}`, filename === undefined
      ? disposition
      : `${disposition}; filename=${quote(filename)}`]
    if (contentType !== undefined) lines.push(`Content-Type: ${contentType}`)
    chunks.push(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes, Buffer.from('\r\n'))
  }
  for (const [field, text] of fields) {
    const isJsonField = field.contentType !== undefined && isJsonMediaType(field.contentType)
    const isArray = text.startsWith('[') && !isJsonField
    if (isArray && field.delimiter !== undefined) {
      addPart(field, JSON.stringify(elementsOf(text).map(toPlainText).join(field.delimiter)))
    } else for (const each of isArray ? elementsOf(text) : [text]) addPart(field, each)
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: `${body.contentType}; boundary=${boundary}`, bytes: Buffer.concat(chunks) }
}

/** Quotes a name for a Content-Disposition header. Line breaks and quotes are encoded as in HTML forms. */
const quote = (name: string): string =>
  `"${name.replace(/[\r\n"]/g, (character) =>
    `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`)}"`

/** One part of a multipart form. */
interface Part { bytes: Buffer, contentType: string | undefined, filename?: string }

function partOf (field: BodyField, text: string): Part {
  const { contentType } = field
  if (field.binary) {
    const { bytes, contentType: stated, name } = decodeBytes(field.argument ?? field.name, text)
    return { bytes, contentType: stated ?? contentType ?? 'application/octet-stream', filename: name ?? field.name }
  }
  const isStructured = text.startsWith('{') || text.startsWith('[')
  if (isStructured || (contentType !== undefined && isJsonMediaType(contentType))) {
    return { bytes: Buffer.from(toOneLine(text)), contentType: contentType ?? 'application/json' }
  }
  return { bytes: Buffer.from(toPlainText(text)), contentType }
}

/** Decodes the bytes of an argument: base64, or a `data:` URL that may state a media type and a file name (`name=`). */
function decodeBytes (argument: string, text: string): { bytes: Buffer, contentType?: string, name?: string } {
  if (!text.startsWith('"')) {
    throw new ArgumentError(`"${argument}" must be a string: bytes in base64, or a data: address`)
  }
  const value = toPlainText(text)
  const [, head, data = value] = /^data:([^,]*),(.*)$/s.exec(value) ?? []
  if (head !== undefined && !/;base64$/i.test(head)) {
    throw new ArgumentError(`"${argument}": a data: address must be in base64 (data:<media type>;base64,…)`)
  }
  const base64 = data.replace(/\s+/g, '')
  if (!/^[\w+/-]*={0,2}$/.test(base64) || base64.replace(/=+$/, '').length % 4 === 1) {
    throw new ArgumentError(`"${argument}" must be bytes in base64, or a data: address`)
  }
  const [contentType, ...parameters] = (head ?? '').split(';')
  const name = parameters.find((each) => /^name=/i.test(each))?.slice(5)
  return {
    bytes: Buffer.from(base64, 'base64'),
    contentType: contentType !== undefined && /^[\w.+-]+\/[\w.+-]+$/.test(contentType) ? contentType : undefined,
    name: name === undefined ? undefined : percentDecode(name) ?? name
  }
}
