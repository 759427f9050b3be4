import { isObject } from '../../protocol/json.ts'
import { lookUp, shapeOf, typesOf, type SchemaType } from './input-shape.ts'
import { inexactNumber } from './numbers.ts'

/**
 * Arguments as a tool's input schema wants them, where a caller wrote them as text (DECISIONS §8): integers and finite numbers,
 * `true|false|1|0`, lists from repeats or commas, objects and lists from JSON. What fits no such rule stays as it is: whoever
 * checks it says what is wrong with it.
 */
export function convertArguments (schema: unknown, args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { properties, others } = shapeOf(schema)
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, convert(properties.has(name) ? properties.get(name) : others, value, schema)]))
}

function convert (schema: unknown, value: unknown, root: unknown): unknown {
  if (Array.isArray(value)) {
    const items = itemsOf(schema, root)
    return items === undefined ? value : value.map((each) => convert(items, each, root))
  }
  if (typeof value !== 'string') return value
  const types = typesOf(schema, root)
  if (types.includes('string')) return value
  for (const type of types) {
    const converted = toType(type, value, schema, root)
    if (converted !== undefined) return converted
  }
  return value
}

function toType (type: SchemaType, text: string, schema: unknown, root: unknown): unknown {
  switch (type) {
    case 'integer': return /^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined
    case 'number': return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && inexactNumber(text) === undefined ? Number(text) : undefined
    case 'boolean': return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : undefined
    case 'null': return text === 'null' ? null : undefined
    case 'object': { const value = parsed(text); return isObject(value) ? value : undefined }
    case 'array': {
      const value = parsed(text)
      if (Array.isArray(value)) return value
      return text === '' ? [] : text.split(',').map((each) => convert(itemsOf(schema, root), each.trim(), root))
    }
    default: return undefined
  }
}

/** What one element of a list must be, where every element must be the same. */
function itemsOf (schema: unknown, root: unknown, depth = 0): unknown {
  if (!isObject(schema) || depth > 8) return undefined
  if (isObject(schema.items)) return schema.items
  const parts = [typeof schema.$ref === 'string' ? lookUp(schema.$ref, root) : undefined, schema.allOf, schema.anyOf, schema.oneOf].flat()
  for (const part of parts) {
    const items = itemsOf(part, root, depth + 1)
    if (items !== undefined) return items
  }
  return undefined
}

function parsed (text: string): unknown {
  try {
    return inexactNumber(text) === undefined ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}
