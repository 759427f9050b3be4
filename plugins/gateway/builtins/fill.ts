import { code, RpcError } from '../../../protocol/errors.ts'
import { isObject } from '../../../protocol/json.ts'
import type { BuiltInPrompt } from '../../../schemas/builtins.ts'
import { limits } from '../../base/limits/index.ts'

/**
 * The text of a prompt with its arguments. Each `{{name}}` (also with spaces inside) is replaced once, by the value as it is: placeholders
 * in values stay. Optional arguments that are not given are empty; placeholders of no argument stay as written.
 * @param given `params.arguments` of the request: texts by name
 * @throws RpcError -32602 for arguments that are missing or no texts, or make the text larger than `limits.builtIns.filled`
 */
export function fill ({ name, template, arguments: declared = [] }: BuiltInPrompt, given: unknown = {}): string {
  if (!isObject(given)) throw invalid('"arguments" must be an object of texts')
  const values = new Map<string, string>()
  for (const [key, value] of Object.entries(given)) {
    if (typeof value !== 'string') throw invalid(`the argument ${JSON.stringify(key)} must be a text`)
    values.set(key, value)
  }
  const missing = declared.filter((each) => each.required === true && !values.has(each.name)).map((each) => JSON.stringify(each.name))
  if (missing.length > 0) {
    const [noun, verb] = missing.length === 1 ? ['argument', 'is'] : ['arguments', 'are']
    throw invalid(`the ${noun} ${missing.join(', ')} of the prompt ${JSON.stringify(name)} ${verb} required`)
  }
  const names = new Set(declared.map((each) => each.name))
  let size = template.length
  return template.replace(/\{\{([^{}]*)\}\}/g, (place, inside: string) => {
    const key = inside.trim()
    const value = values.get(key) ?? (names.has(key) ? '' : place)
    size += value.length - place.length
    if (value !== place && size > limits.builtIns.filled) {
      throw invalid(`the prompt with these arguments would be longer than ${limits.builtIns.filled} characters`)
    }
    return value
  })
}

const invalid = (reason: string): RpcError => new RpcError(code.invalidParams, `Invalid params: ${reason}`)
