import { CORE_SCHEMA, load, YAMLException } from 'js-yaml'
import { parse as parseToml, TomlError } from 'smol-toml'

/** The formats of configuration files other than JSON. */
type TextFormat = 'TOML' | 'YAML'

/** Max nesting depth of a document. */
const maxDepth = 64
/** Max number of characters that aliases may add to a YAML document. */
const maxRepeated = 1024 * 1024

/**
 * Guesses the format of a text, mainly from its first line with content; undefined if it is neither TOML nor YAML.
 */
export function textFormatOf (text: string): TextFormat | undefined {
  const line = text.split('\n').map((each) => each.trim()).find((each) => each !== '' && !each.startsWith('#')) ?? ''
  const tableHeader = /^\[{1,2}\s*["'\w][^\],{}]*\]{1,2}\s*(?:#.*)?$/
  // A Codex file may begin with other settings.
  if (
    tableHeader.test(line) ||
    (/^[\w.-]+\s+=\s/.test(line) && text.split('\n').some((each) => tableHeader.test(each.trim())))
  ) return 'TOML'
  return /^(?:---|["']?[A-Za-z_][\w.-]*["']?:)(?:\s|$)/.test(line) ? 'YAML' : undefined
}

/**
 * Parses a document in TOML (Codex) or YAML (Continue, OpenAPI).
 * @throws SyntaxError with the line of the mistake
 */
export function parseTomlOrYaml (text: string, format: TextFormat): unknown {
  try {
    // The parser returns objects without a prototype, and dates as objects, so the result is converted to plain JSON.
    if (format === 'TOML') return JSON.parse(JSON.stringify(parseToml(text, { maxDepth })))
    const value = load(text, { schema: CORE_SCHEMA, maxDepth })
    // Aliases can make a value far larger than its text, or make it contain itself.
    if (isLargerThan(value, text.length)) {
      throw new SyntaxError('its aliases make it larger than its text')
    }
    return value
  } catch (error) {
    if (error instanceof TomlError) {
      throw new SyntaxError(`${error.message.split('\n', 1)[0] ?? ''} (line ${error.line}, column ${error.column})`)
    }
    if (!(error instanceof YAMLException)) throw error
    const { reason, mark } = error
    throw new SyntaxError(mark ? `${reason} (line ${mark.line + 1}, column ${mark.column + 1})` : reason)
  }
}

/**
 * Whether a parsed value is much larger than its text, because of aliases.
 * @param size the length of the text, in characters
 */
function isLargerThan (value: unknown, size: number): boolean {
  const open = [value]
  let values = 0
  let characters = 0
  for (let each = open.pop(); each !== undefined; each = open.pop()) {
    if (typeof each === 'string') characters += each.length
    if (++values > size || characters > size + maxRepeated) return true
    if (typeof each !== 'object' || each === null) continue
    for (const [name, member] of Object.entries(each)) {
      if (!Array.isArray(each)) characters += name.length
      if (member !== undefined) open.push(member)
    }
  }
  return false
}
