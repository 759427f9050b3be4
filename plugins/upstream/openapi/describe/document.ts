import { resourceLimits } from 'node:worker_threads'
import { CORE_SCHEMA, load, mergeTag, YAMLException } from 'js-yaml'
import { isObject } from '../../../../protocol/json.ts'
import { withoutBom } from '../../../../protocol/text.ts'
import { parsedSizeOf, tooMuchMemory } from '../../../base/threads/index.ts'
import { DescriptionError } from '../plan.ts'

/** Limits of a description's content. A value that YAML aliases refer to counts at each use. */
interface DocumentLimits {
  /** Max number of values. */
  values: number
  /** Max characters of all strings and member names together. */
  characters: number
  /** Max nesting depth. */
  depth: number
}

/**
 * Parses the text of a description in JSON or YAML.
 * @throws DescriptionError that states the position of a syntax error, or the limit that is exceeded
 */
export function parseDocument (text: string, documentLimits: DocumentLimits): Record<string, unknown> {
  const value = parse(withoutBom(text), documentLimits)
  if (!isObject(value)) {
    throw new DescriptionError('it is not an OpenAPI description: an object is expected, in JSON or YAML')
  }
  checkLimits(value, documentLimits)
  return value
}

function parse (text: string, { depth }: Pick<DocumentLimits, 'depth'>): unknown {
  let jsonError: unknown
  if (/^\s*[{[]/.test(text)) {
    checkMemory(text, 'json')
    try {
      return JSON.parse(text)
    } catch (error) {
      jsonError = error
    }
  } else if (/^\s*<(!doctype|html|\?xml)/i.test(text)) {
    throw new DescriptionError(
      'it is not an OpenAPI description but an HTML or XML page: use the address of the JSON or YAML document'
    )
  }
  checkMemory(text, 'yaml')
  try {
    return load(text, { schema: CORE_SCHEMA.withTags(mergeTag), json: true, maxDepth: depth })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    throw syntaxError(error, jsonError)
  }
}

/** Checks the size of a text. @throws DescriptionError if parsing may take over three quarters of this thread's heap */
function checkMemory (text: string, format: 'json' | 'yaml'): void {
  const { maxOldGenerationSizeMb: heap = Infinity } = resourceLimits
  const parsable = heap * 1_048_576 * 0.75
  if (parsedSizeOf(text, format, parsable) > parsable) {
    throw new DescriptionError(`reading it was stopped: ${tooMuchMemory(heap)}`)
  }
}

/** Creates an error that quotes nothing of the text: users who may not see the description may see the error. */
function syntaxError ({ mark, reason }: YAMLException, jsonError: unknown): DescriptionError {
  const position = mark ? ` (line ${mark.line + 1}, column ${mark.column + 1})` : ''
  if (jsonError instanceof Error) {
    const message = jsonError.message.replace(/^Unexpected token.*$/s, 'Unexpected token')
    return new DescriptionError(`it is not valid JSON: ${message}${position}`)
  }
  return new DescriptionError(`it is not valid YAML: ${reason.split(/["'`:]|!</, 1)[0]?.trim()}${position}`)
}

/**
 * Checks the size of a parsed value. Because of YAML aliases it may be far larger than its text, or contain itself.
 * @throws DescriptionError if a limit is exceeded
 */
export function checkLimits (value: unknown, { values, characters, depth }: DocumentLimits): void {
  let level: unknown[] = [value]
  let count = 0
  let length = 0
  for (let levels = 0; level.length > 0; levels++) {
    if (levels > depth) throw new DescriptionError(`it is nested deeper than ${depth} levels, or contains itself`)
    const nextLevel: unknown[] = []
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue
      if (!Array.isArray(each)) for (const name of Object.keys(each)) length += name.length
      for (const member of Object.values(each) as unknown[]) {
        if (++count > values) throw new DescriptionError(`it contains more than ${values} values`)
        if (typeof member === 'string') length += member.length
        if (length > characters) throw new DescriptionError(`it contains strings of more than ${characters} characters`)
        if (typeof member === 'object' && member !== null) nextLevel.push(member)
      }
    }
    level = nextLevel
  }
}
