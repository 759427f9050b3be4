import { isObject, parseIfJson } from '../../../../protocol/json.ts'

/** A part of a result, as the component `result` expects it. */
interface ResultBlock {
  readonly kind: 'text' | 'json' | 'image' | 'audio' | 'link' | 'file'
  readonly text?: string
  /** A `data:` URL. */
  readonly src?: string
  readonly mimeType?: string
  readonly href?: string
  /** The name of a link or a file. */
  readonly name?: string
  /** The role of a prompt's message, or the URI of a resource. */
  readonly by?: string
}

/**
 * Returns the blocks of a result of `tools/call`, `prompts/get` or `resources/read`, in order. Structured content comes
 * last, unless a text block repeats it.
 */
export function blocksOf (result: unknown): ResultBlock[] {
  if (!isObject(result)) return [json(result)]
  const { content, structuredContent, messages, contents } = result
  if (Array.isArray(messages)) {
    return (messages as unknown[]).map((each) =>
      isObject(each) ? { ...blockOf(each.content), by: String(each.role) } : json(each))
  }
  if (Array.isArray(contents)) {
    return (contents as unknown[]).map((resource) =>
      ({ ...blockOf({ type: 'resource', resource }), ...isObject(resource) && { by: String(resource.uri) } }))
  }
  if (!Array.isArray(content)) return [json(result)]
  const blocks = content.map(blockOf)
  const isRepeated = blocks.some(({ kind, text }) => kind === 'json' && text === json(structuredContent).text)
  return structuredContent === undefined || isRepeated ? blocks : [...blocks, json(structuredContent)]
}

function blockOf (part: unknown): ResultBlock {
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
    const [, family] = typeof kind === 'string' ? /^(image|audio)\//.exec(kind) ?? [] : []
    if (typeof blob === 'string' && (family === 'image' || family === 'audio')) {
      return { kind: family, src: `data:${String(kind)};base64,${blob}`, mimeType: String(kind) }
    }
    if (typeof blob === 'string') {
      const size = Math.floor(blob.length * 3 / 4).toLocaleString('en')
      const text = `${size} bytes of ${typeof kind === 'string' ? kind : 'an unknown type'}`
      // The media type makes browsers save the file, not show it.
      return { kind: 'file', text, src: `data:application/octet-stream;base64,${blob}`, name: fileNameOf(resource.uri) }
    }
  }
  return json(part)
}

/** Returns a file name for the content of a resource, from the last part of its URI. */
const fileNameOf = (uri: unknown): string =>
  /([\w.-]{1,100})$/.exec(String(uri))?.[1]?.replace(/^\.+/, '') || 'resource'

/** Returns the block of a text, which is shown as JSON if it is a JSON object or array of moderate size. */
function textBlock (text: string): ResultBlock {
  if (!/^\s*[[{]/.test(text) || text.length > 1024 * 1024) return { kind: 'text', text }
  const value = parseIfJson(text)
  return value === undefined ? { kind: 'text', text } : json(value)
}

const json = (value: unknown): ResultBlock => ({ kind: 'json', text: JSON.stringify(value, undefined, 2) ?? '' })
