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
  if ((type === 'image' || type === 'audio') && typeof data === 'string') return mediaBlock(data, mimeType, type)
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
    if (typeof blob === 'string') return mediaBlock(blob, kind, fileNameOf(resource.uri))
  }
  return json(part)
}

/** Matches the `data:` URL of an image of a type that runs no scripts, or of audio. The group is the kind. */
const shownMedia = /^data:(image(?=\/(?:png|jpeg|gif|webp);)|audio)\/[\w.+-]+;base64,[\w+/=]+$/

/**
 * Returns the block of binary content: an image or audio if the console shows its type, else a file to save.
 * @param data the content in base64
 * @param mimeType its type; not a string if the server states none
 * @param name the name of the file
 */
function mediaBlock (data: string, mimeType: unknown, name: string): ResultBlock {
  const type = typeof mimeType === 'string' ? mimeType : undefined
  const src = `data:${type ?? ''};base64,${data}`
  const kind = shownMedia.exec(src)?.[1]
  if (type !== undefined && (kind === 'image' || kind === 'audio')) return { kind, src, mimeType: type }
  const text = `${Buffer.byteLength(data, 'base64').toLocaleString('en')} bytes of ${type ?? 'an unknown type'}`
  // The media type makes browsers save the file, not show it.
  return { kind: 'file', text, src: `data:application/octet-stream;base64,${data}`, name }
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
