import { isObject } from '../../../../protocol/json.ts'

/** A part of a result, as the component `result` takes it. */
export interface Block {
  readonly kind: 'text' | 'json' | 'image' | 'audio' | 'link'
  readonly text?: string
  /** A `data:` address. */
  readonly src?: string
  readonly mimeType?: string
  readonly href?: string
  readonly name?: string
}

/** The blocks of a `tools/call` result, in order. Structured content comes last unless a text block repeats it. */
export function blocksOf (result: unknown): Block[] {
  if (!isObject(result)) return [json(result)]
  const { content, structuredContent } = result
  if (!Array.isArray(content)) return [json(result)]
  const blocks = content.map(blockOf)
  const isRepeated = blocks.some(({ kind, text }) => kind === 'json' && text === json(structuredContent).text)
  return structuredContent === undefined || isRepeated ? blocks : [...blocks, json(structuredContent)]
}

function blockOf (part: unknown): Block {
  if (!isObject(part)) return json(part)
  const { type, text, data, mimeType, uri, name, description, resource } = part
  if (type === 'text' && typeof text === 'string') return textBlock(text)
  if ((type === 'image' || type === 'audio') && typeof data === 'string' && typeof mimeType === 'string') {
    return { kind: type, src: `data:${mimeType};base64,${data}`, mimeType }
  }
  if (type === 'resource_link' && typeof uri === 'string') {
    return {
      kind: 'link',
      href: uri,
      ...typeof name === 'string' && { name },
      ...typeof description === 'string' && { text: description }
    }
  }
  if (type === 'resource' && isObject(resource)) {
    const { text: inner, blob, mimeType: kind } = resource
    if (typeof inner === 'string') return textBlock(inner)
    if (typeof blob === 'string' && typeof kind === 'string' && kind.startsWith('image/')) {
      return { kind: 'image', src: `data:${kind};base64,${blob}`, mimeType: kind }
    }
  }
  return json(part)
}

/** A text block; text that is JSON is shown as JSON. */
function textBlock (text: string): Block {
  if (!/^\s*[[{]/.test(text) || text.length > 1024 * 1024) return { kind: 'text', text }
  try {
    return json(JSON.parse(text))
  } catch {
    return { kind: 'text', text }
  }
}

const json = (value: unknown): Block => ({ kind: 'json', text: JSON.stringify(value, undefined, 2) ?? '' })
