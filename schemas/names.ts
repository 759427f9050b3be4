/** Names that no entity may have, since objects inherit members of these names, or pass them on (`prototype`). */
export const prototypeMemberNames: readonly string[] = [...Object.getOwnPropertyNames(Object.prototype), 'prototype']

/**
 * The reason why no entity may have this name, as a clause that follows the member name; undefined if it is allowed.
 */
export const reservedNameProblem = (name: string): string | undefined =>
  name === 'prototype' ? 'must not be "prototype", which is reserved' : undefined

/** Names that servers and groups must not have: the inherited names, and segments of routes. */
const reservedNames = new Set([
  ...prototypeMemberNames,
  'call',
  'openapi',
  'openapi.json',
  'servers',
  'stats',
  'batch',
  'group',
  'groups',
  'mcp',
  'sse',
  'messages',
  'api',
  'oauth',
  'tools',
  'prompts',
  'resources'
])

/**
 * A letter, mark or digit. Characters that are not displayed are excluded, even if Unicode classifies them as letters.
 */
const letter = '(?!\\p{Default_Ignorable_Code_Point})[\\p{L}\\p{M}\\p{N}]'
/** Starts with a letter, a digit or a hyphen, not with a combining mark; ends without a space. */
const namePattern = new RegExp(`^(?!\\p{M})(?:${letter}|-)(?:(?:${letter}|[._ -])*(?:${letter}|[._-]))?$`, 'u')

/** The reason why a name has a wrong length or characters that are not allowed; undefined if it has neither. */
function patternProblem (name: string): string | undefined {
  const length = [...name].length
  if (length < 1 || length > 128) return 'the name must have 1 to 128 characters'
  if (!namePattern.test(name)) {
    return 'the name may contain only letters, digits, ".", "_", "-" and inner spaces, and must not start with "." ' +
      'or "_"'
  }
  return undefined
}

/**
 * The reason why a new name that is not in Unicode NFC is rejected; undefined if it is in NFC. Names with the same
 * letters must be equal.
 */
const composedProblem = (name: string): string | undefined =>
  name === name.normalize('NFC') ? undefined : 'the name must be in Unicode NFC (composed characters)'

/**
 * The reason why a server or group must not have this name, as a clause; undefined if it is allowed. Valid names have 1
 * to 128 code points: letters and digits of any script, `.`, `_`, `-` and inner spaces. They do not start with `.`, `$`
 * or `_`.
 */
export const nameProblem = (name: string): string | undefined =>
  patternProblem(name) ?? (reservedNames.has(name) ? `the name ${JSON.stringify(name)} is reserved` : undefined)

/**
 * The reason why a new server or group must not have this name; undefined if it is allowed. New names must also be in
 * Unicode NFC.
 */
export const newNameProblem = (name: string): string | undefined => nameProblem(name) ?? composedProblem(name)

/**
 * A valid server name, derived from a name in another program: `io.github.ada-weather` for `io.github.ada/weather`. If
 * none can be derived, or the name is already valid, it is returned unchanged.
 */
export function toServerName (name: string): string {
  const text = name.normalize('NFC').replace(/[^\p{L}\p{M}\p{N}._ -]+/gu, '-').replace(/^[\p{M}._ -]+|[ -]+$/gu, '')
  return newNameProblem(name) !== undefined && newNameProblem(text) === undefined ? text : name
}

/**
 * The reason why a group member must not have this alias; undefined if it is allowed. The alias replaces the server's
 * name in names of tools, but is not part of any route, so route segments are allowed.
 */
export const aliasProblem = (name: string): string | undefined =>
  patternProblem(name) ?? (prototypeMemberNames.includes(name)
    ? `the name ${JSON.stringify(name)} is reserved`
    : composedProblem(name))

/**
 * Whether a new name has the form of a UUID. Routes and scopes that accept a name or an id would mistake it for an id.
 */
export const looksLikeId = (name: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(name)

/** Max length of a tool name in the model APIs of agents. */
export const maxModelSafeNameLength = 64

/** Whether the model APIs of agents accept a name of a tool, prompt or argument. */
export const isModelSafeName = (name: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(name)

/** A name separator reduced to the characters that model APIs accept. */
export const toModelSafeSeparator = (separator: string): string =>
  isModelSafeName(separator) ? separator : toModelSafeText(separator)

/** A warning about a name separator that is changed for model APIs; undefined if it is used unchanged. */
export const separatorWarning = (separator: unknown): string | undefined =>
  typeof separator !== 'string' || !/^[!-~]{1,8}$/.test(separator) || isModelSafeName(separator)
    ? undefined
    : `"nameSeparator": ${JSON.stringify(separator)} becomes ${JSON.stringify(toModelSafeSeparator(separator))} in ` +
      'names, since model APIs accept only letters, digits, "_" and "-"; calls accept both forms'

/**
 * A text reduced to the characters that model APIs accept: letters lose their diacritics, and other characters become
 * `_`. The end may be truncated.
 */
export const toModelSafeText = (text: string): string =>
  text.slice(0, 4 * maxModelSafeNameLength).normalize('NFKD').replace(/\p{M}+/gu, '').replace(/[^A-Za-z0-9_-]+/g, '_')

/**
 * Whether a name contains characters that hide or change what is displayed: control characters, line separators,
 * bidirectional controls.
 */
export const hasControlCharacters = (name: string): boolean => /[\p{Cc}\p{Cs}\p{Bidi_Control}\p{Zl}\p{Zp}]/u.test(name)
