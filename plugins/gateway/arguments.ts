import { isObject } from '../../protocol/json.ts'

/**
 * Arguments as a tool's input schema wants them, where a caller wrote them as text (DECISIONS §8): integers and finite numbers,
 * `true|false|1|0`, lists from commas, objects and lists from JSON. What fits no such rule is passed on as it is: the upstream
 * says what is wrong with it.
 */
export function convertArguments (schema: unknown, args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {}
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, Object.hasOwn(properties, name) ? convert(properties[name], value) : value]))
}

const typesOf = (schema: unknown): string[] => !isObject(schema) ? [] : Array.isArray(schema.type) ? schema.type.map(String) : typeof schema.type === 'string' ? [schema.type] : []

function convert (schema: unknown, value: unknown): unknown {
  const types = typesOf(schema)
  if (typeof value !== 'string' || types.length === 0 || types.includes('string')) return value
  for (const type of types) {
    const converted = toType(type, value, schema)
    if (converted !== undefined) return converted
  }
  return value
}

function toType (type: string, text: string, schema: unknown): unknown {
  switch (type) {
    case 'integer': return /^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined
    case 'number': return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined
    case 'boolean': return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : undefined
    case 'null': return text === 'null' ? null : undefined
    case 'object': { const value = parsed(text); return isObject(value) ? value : undefined }
    case 'array': {
      const value = parsed(text)
      const items = isObject(schema) ? schema.items : undefined
      return Array.isArray(value) ? value : text.split(',').map((each) => convert(items, each.trim()))
    }
    default: return undefined
  }
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
