/** Names that, as keys of objects, would be confused with inherited members; and `prototype`. */
export const prototypeMemberNames: readonly string[] = [...Object.getOwnPropertyNames(Object.prototype), 'prototype']

/**
 * Returns the reason why an entity must not have a name, as a clause whose subject is the member; undefined if it may.
 */
export const reservedNameProblem = (name: string): string | undefined =>
  name === 'prototype' ? 'must not be "prototype", which is reserved' : undefined

/** Names that servers and groups must not have: `prototypeMemberNames`, and segments of routes. */
const reservedNames = new Set([
  ...prototypeMemberNames,
  'call',
  'openapi',
  'openapi.json',
  'openapi.yaml',
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
 * Matches a letter, mark or digit. Characters that are not displayed are excluded, even if Unicode classifies them as
 * letters.
 */
const letter = '(?!\\p{Default_Ignorable_Code_Point})[\\p{L}\\p{M}\\p{N}]'
/**
 * Matches a name that starts with a letter, digit or hyphen, not with a combining mark, and does not end with a space.
 */
const namePattern = new RegExp(`^(?!\\p{M})(?:${letter}|-)(?:(?:${letter}|[._ -])*(?:${letter}|[._-]))?$`, 'u')

/** Describes what is wrong with the length or the characters of a name, as a clause; undefined if both are allowed. */
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
 * Returns the reason why a new name that is not in Unicode NFC is rejected, as a clause; undefined if it is in NFC. In
 * NFC, names with the same letters are equal.
 */
const composedProblem = (name: string): string | undefined =>
  name === name.normalize('NFC') ? undefined : 'the name must be in Unicode NFC (composed characters)'

/**
 * Returns the reason why a server or group must not have a name, as a clause; undefined if the name is allowed. Valid
 * names have 1 to 128 code points: letters and digits of any script, `.`, `_`, `-` and inner spaces. They do not start
 * with `.`, `$` or `_`.
 */
export const nameProblem = (name: string): string | undefined =>
  patternProblem(name) ?? (reservedNames.has(name) ? `the name ${JSON.stringify(name)} is reserved` : undefined)

/**
 * Returns the reason why a new server or group must not have a name, as a clause; undefined if the name is allowed. In
 * contrast to stored names, new names must be in Unicode NFC.
 */
export const newNameProblem = (name: string): string | undefined => nameProblem(name) ?? composedProblem(name)

/**
 * Derives a valid server name from a name in another program: `io.github.ada-weather` from `io.github.ada/weather`. A
 * name that is already valid, or from which none can be derived, is returned unchanged.
 */
export function toServerName (name: string): string {
  const text = name.normalize('NFC').replace(/[^\p{L}\p{M}\p{N}._ -]+/gu, '-').replace(/^[\p{M}._ -]+|[ -]+$/gu, '')
  return newNameProblem(name) !== undefined && newNameProblem(text) === undefined ? text : name
}

/**
 * Returns the reason why a group member must not have an alias, as a clause; undefined if the alias is allowed. The
 * alias replaces the server's name in names of tools, but is not part of any route, so names of route segments are
 * allowed.
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

/** Max length of a tool name in the model APIs that agents use, in characters. */
export const maxModelSafeNameLength = 64

/** Whether the model APIs that agents use accept the name of a tool, prompt or argument. */
export const isModelSafeName = (name: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(name)

/** Replaces the characters of a name separator that model APIs do not accept. */
export const toModelSafeSeparator = (separator: string): string =>
  isModelSafeName(separator) ? separator : toModelSafeText(separator)

/** Returns a warning about a name separator that is changed for model APIs; undefined if it is used as it is. */
export const separatorWarning = (separator: unknown): string | undefined =>
  typeof separator !== 'string' || !/^[!-~]{1,8}$/.test(separator) || isModelSafeName(separator)
    ? undefined
    : `"nameSeparator": ${JSON.stringify(separator)} becomes ${JSON.stringify(toModelSafeSeparator(separator))} in ` +
      'names, since model APIs accept only letters, digits, "_" and "-"; calls accept both forms'

/**
 * Replaces the characters of a text that model APIs do not accept: letters lose their diacritics, and each
 * sequence of other characters becomes `_`. The end of a long text is cut off.
 */
export const toModelSafeText = (text: string): string =>
  text.slice(0, 4 * maxModelSafeNameLength).normalize('NFKD').replace(/\p{M}+/gu, '').replace(/[^A-Za-z0-9_-]+/g, '_')

/**
 * Whether a name contains characters that hide or change what is displayed: control characters, line and paragraph
 * separators, bidirectional controls and lone surrogates.
 */
export const hasControlCharacters = (name: string): boolean => /[\p{Cc}\p{Cs}\p{Bidi_Control}\p{Zl}\p{Zp}]/u.test(name)
