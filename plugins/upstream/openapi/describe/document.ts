import { CORE_SCHEMA, load, mergeTag, YAMLException } from 'js-yaml'
import { isObject } from '../../../../protocol/json.ts'
import { DescriptionError } from '../problems.ts'

/** Bounds of a description's content, whatever its size. */
export interface DocumentLimits {
  /** Values in it, what aliases stand for counted each time. */
  values: number
  depth: number
}

/**
 * The value of a description's text, JSON or YAML.
 * @throws DescriptionError that says where it cannot be read
 */
export function parseDocument (text: string, bounds: DocumentLimits): Record<string, unknown> {
  const value = parse(text.replace(/^\uFEFF/, ''), bounds)
  if (!isObject(value)) throw new DescriptionError('it is no OpenAPI description: an object is expected, in JSON or YAML')
  checkLimits(value, bounds)
  return value
}

function parse (text: string, { depth }: DocumentLimits): unknown {
  let failure: unknown
  if (/^\s*[{[]/.test(text)) {
    try {
      return JSON.parse(text)
    } catch (error) {
      failure = error
    }
  } else if (/^\s*<(!doctype|html|\?xml)/i.test(text)) {
    throw new DescriptionError('it is no OpenAPI description but a page in HTML or XML: give the address of the JSON or YAML itself')
  }
  try {
    return load(text, { schema: CORE_SCHEMA.withTags(mergeTag), json: true, maxDepth: depth })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const where = error.mark ? ` (line ${error.mark.line + 1}, column ${error.mark.column + 1})` : ''
    // Never a piece of the text: whoever sees the error may not be whom it is for.
    if (failure instanceof Error) {
      throw new DescriptionError(`it is not valid JSON: ${failure.message.replace(/^Unexpected token.*$/s, 'Unexpected token')}${where}`)
    }
    throw new DescriptionError(`it is not valid YAML: ${error.reason.split(/["'`:]|!</, 1)[0]?.trim()}${where}`)
  }
}

/** Walks all of a value as a tree: aliases may make it a far larger one than its text, or one without an end. */
export function checkLimits (value: unknown, { values, depth }: DocumentLimits): void {
  let level: unknown[] = [value]
  let count = 0
  for (let deep = 0; level.length > 0; deep++) {
    if (deep > depth) throw new DescriptionError(`it is nested deeper than ${depth} levels, or holds itself`)
    const next: unknown[] = []
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue
      for (const member of Object.values(each)) {
        if (++count > values) throw new DescriptionError(`it holds more than ${values} values`)
        if (typeof member === 'object' && member !== null) next.push(member)
      }
    }
    level = next
  }
}
