import { createHash } from 'node:crypto'

/**
 * Escapes the characters that PostgreSQL cannot store (NUL and unpaired surrogates): each becomes U+E000 and four hex
 * digits, as does U+E000 itself.
 */
export const escapeForPostgres = (text: string): string =>
  text.replace(
    // eslint-disable-next-line no-control-regex
    /[\u0000\ue000]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    (character) => `\ue000${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  )
/** Reverses `escapeForPostgres`. */
export const unescapeFromPostgres = (text: string): string =>
  text.replace(/\ue000([0-9a-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const plainName = /^[\x20-\x7e]{0,512}$/

/**
 * Escapes a text. If it is longer than `maxSize` in bytes, which is too long for an index, a hash replaces its end.
 */
export function toIndexableText (name: string, maxSize = 512): string {
  if (plainName.test(name)) return name
  const text = escapeForPostgres(name)
  return Buffer.byteLength(text) <= maxSize ? text : `${text.slice(0, 64).toWellFormed()}…${sha256(text)}`
}
