import { randomBytes } from 'node:crypto'
import { elementsOf, oneLine } from '../../../../protocol/json.ts'
import type { RequestBody, FormField } from '../plan.ts'
import { ArgumentError } from '../problems.ts'
import { entriesOf, percentEncode, pairsOf, scalarOf } from './values.ts'

/** A request's body, and what its `content-type` says. */
export interface EncodedBody { type: string, bytes: Buffer }

/**
 * The body that the arguments make; undefined: there is none.
 * @param given each argument that the body may take, as JSON text
 * @throws ArgumentError
 */
export function encodeBody (body: RequestBody, given: ReadonlyMap<string, string>): EncodedBody | undefined {
  const whole = body.argument === undefined ? undefined : given.get(body.argument)
  if (body.argument === undefined ? given.size === 0 && !body.required : whole === undefined) return undefined
  switch (body.format) {
    case 'json':
      return { type: body.contentType, bytes: Buffer.from(oneLine(whole ?? toObject(given))) }
    case 'text':
      return { type: body.contentType, bytes: Buffer.from(scalarOf(whole ?? '""')) }
    case 'binary': {
      const { bytes, type } = decode(body.argument ?? 'body', whole ?? '""')
      return { type: body.anyContentType ? (type ?? body.contentType) : body.contentType, bytes }
    }
    case 'urlencoded':
      return {
        type: body.contentType,
        bytes: Buffer.from(
          fieldsOf(body, whole, given)
            .flatMap(([field, text]) => urlencoded(field, text))
            .join('&')
        )
      }
    case 'multipart':
      return multipart(body, fieldsOf(body, whole, given))
  }
}

const toObject = (given: ReadonlyMap<string, string>): string =>
  `{${[...given].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`

function fieldsOf (body: RequestBody, whole: string | undefined, given: ReadonlyMap<string, string>): Array<[FormField, string]> {
  if (whole !== undefined && !whole.startsWith('{')) {
    throw new ArgumentError(`"${body.argument}" must be an object: its members are the form's fields`)
  }
  const known = new Map(body.fields.map((field) => [field.name, field]))
  return [...(whole === undefined ? given : entriesOf(whole))]
    .filter(([, text]) => text !== 'null')
    .map(([name, text]) => [known.get(name) ?? { name }, text])
}

/** Without a style of its own, a list is repeated, and an object is JSON (OpenAPI, "Encoding Object"). */
function urlencoded ({ name, serialization: writing, contentType: type }: FormField, text: string): string[] {
  if (writing) return pairsOf(name, writing, text)
  return text.startsWith('{') || (type !== undefined && isJsonMediaType(type))
    ? [`${percentEncode(name)}=${percentEncode(oneLine(text))}`]
    : pairsOf(name, { style: 'form', explode: true }, text)
}

const quoted = (name: string): string =>
  `"${name.replace(/[\r\n"]/g, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`)}"`

function multipart (body: RequestBody, fields: Array<[FormField, string]>): EncodedBody {
  const boundary = `----${randomBytes(18).toString('hex')}`
  const parts: Buffer[] = []
  const part = (field: FormField, text: string): void => {
    const { bytes, type, file } = partOf(field, text)
    const lines = [
      `--${boundary}`,
      `Content-Disposition: form-data; name=${quoted(field.name)}${file === undefined ? '' : `; filename=${quoted(file)}`}`
    ]
    if (type !== undefined) lines.push(`Content-Type: ${type}`)
    parts.push(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes, Buffer.from('\r\n'))
  }
  for (const [field, text] of fields) {
    const list = text.startsWith('[') && !(field.contentType !== undefined && isJsonMediaType(field.contentType))
    if (list && field.delimiter !== undefined) part(field, JSON.stringify(elementsOf(text).map(scalarOf).join(field.delimiter)))
    else for (const each of list ? elementsOf(text) : [text]) part(field, each)
  }
  return { type: `${body.contentType}; boundary=${boundary}`, bytes: Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]) }
}

/** True for `application/json` and its kin. */
export const isJsonMediaType = (type: string): boolean => /^[^;]*[/+]json\s*(;|$)/i.test(type)

function partOf (field: FormField, text: string): { bytes: Buffer, type: string | undefined, file?: string } {
  if (field.binary) {
    const { bytes, type, name } = decode(field.name, text)
    return { bytes, type: type ?? field.contentType ?? 'application/octet-stream', file: name ?? field.name }
  }
  const structured = text.startsWith('{') || text.startsWith('[')
  if (structured || (field.contentType !== undefined && isJsonMediaType(field.contentType))) {
    return { bytes: Buffer.from(oneLine(text)), type: field.contentType ?? 'application/json' }
  }
  return { bytes: Buffer.from(scalarOf(text)), type: field.contentType }
}

/** Bytes from an argument: base64, or a `data:` address in base64, which may also give the media type and `name`. */
function decode (argument: string, text: string): { bytes: Buffer, type?: string, name?: string } {
  if (!text.startsWith('"')) throw new ArgumentError(`"${argument}" must be a string: bytes in base64, or a data: address`)
  const value = scalarOf(text)
  const [, head, data = value] = /^data:([^,]*),(.*)$/s.exec(value) ?? []
  if (head !== undefined && !/;base64$/i.test(head)) {
    throw new ArgumentError(`"${argument}": a data: address must be in base64 (data:<media type>;base64,…)`)
  }
  const plain = data.replace(/\s+/g, '')
  if (!/^[\w+/-]*={0,2}$/.test(plain) || plain.replace(/=+$/, '').length % 4 === 1) {
    throw new ArgumentError(`"${argument}" must be bytes in base64, or a data: address`)
  }
  const [type, ...more] = (head ?? '').split(';')
  const name = more.find((each) => /^name=/i.test(each))?.slice(5)
  return {
    bytes: Buffer.from(plain, 'base64'),
    type: type === undefined || !/^[\w.+-]+\/[\w.+-]+$/.test(type) ? undefined : type,
    name: name === undefined ? undefined : unescaped(name)
  }
}

function unescaped (name: string): string {
  try { return decodeURIComponent(name) } catch { return name }
}
