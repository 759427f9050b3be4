/** Names that would meet a route, or `Object.prototype`, if a server or group bore them. */
const reserved = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
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

/** What nobody can see is no letter, whatever Unicode says; a mark stands on a letter. */
const letter = '(?!\\p{Default_Ignorable_Code_Point})[\\p{L}\\p{M}\\p{N}]'
const grammar = new RegExp(`^(?!\\p{M})(?:${letter}|-)(?:(?:${letter}|[._ -])*(?:${letter}|[._-]))?$`, 'u')

function wordProblem (name: string): string | undefined {
  const length = [...name].length
  if (length < 1 || length > 128) return 'the name must have 1 to 128 characters'
  if (!grammar.test(name)) return 'the name may have letters, digits, ".", "_", "-" and inner spaces, and must not start with "." or "_"'
  return undefined
}

/** Of two ways to write the same letters a new name takes the composed one, so that no two names look alike. */
const composedProblem = (name: string): string | undefined =>
  name === name.normalize('NFC') ? undefined : 'the name must be written with composed letters (Unicode NFC)'

/**
 * Why a server or group may not bear this name, as a sentence; undefined when it may.
 * 1–128 code points, letters and digits of any script, `.`, `_`, `-` and inner space; not starting with `.`, `$` or `_`.
 */
export const nameProblem = (name: string): string | undefined =>
  wordProblem(name) ?? (reserved.has(name) ? `the name ${JSON.stringify(name)} is reserved` : undefined)

/** As `nameProblem`, for a name that is new. */
export const newNameProblem = (name: string): string | undefined => nameProblem(name) ?? composedProblem(name)

/** Why a member of a group may not get this alias: it stands in a server's place in the names of tools, but in no route. */
export const aliasProblem = (name: string): string | undefined => wordProblem(name) ?? composedProblem(name)
