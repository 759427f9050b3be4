import { elementsOf, isObject, parseSmallMember } from '../json.ts'
import { mend } from '../mending.ts'
import type { Shape } from './shape.ts'
import { anyValue, object, list, meta, string, number, stringMembers, requiredText, coercedList } from './parts.ts'

/** Creates the shape of a resource's contents. @param uri the requested resource's URI, as JSON text */
export const resourceContentsShape = (uri: string): Shape => ({
  type: 'object',
  isObject: true,
  coerce: (text) => text.startsWith('"') ? `{"uri":${uri},"text":${text}}` : undefined,
  members: {
    uri: { ...string, fallback: uri },
    ...stringMembers('mimeType', 'blob'),
    text: { ...requiredText, isNeeded: (valueOf) => valueOf('blob') === undefined },
    ...meta
  },
  required: ['uri', 'text']
})
const contents: Shape = { ...resourceContentsShape('""'), fallback: '{"uri":"","text":""}' }

/** Creates a text block. @param text a JSON text: a string, or another value that is not a block */
const asBlock = (text: string): string => `{"type":"text","text":${text.startsWith('"') ? text : JSON.stringify(text)}}`
const isOf = (...types: unknown[]) =>
  (valueOf: (key: string) => unknown): boolean => types.includes(valueOf('type') ?? 'text')
/** The members of all types of content blocks. The `input` of a tool use may be anything. */
const blockMembers: Readonly<Record<string, Shape>> = {
  ...stringMembers('title', 'description'),
  type: { ...string, fallback: '"text"' },
  text: { ...requiredText, isNeeded: isOf('text') },
  data: { ...string, fallback: '""', isNeeded: isOf('image', 'audio') },
  mimeType: { ...string, fallback: '"application/octet-stream"', isNeeded: isOf('image', 'audio') },
  uri: { ...string, fallback: '""', isNeeded: isOf('resource_link') },
  name: { ...string, fallback: '""', isNeeded: isOf('resource_link') },
  resource: { ...contents, isNeeded: isOf('resource') },
  size: number,
  annotations: object({ audience: coercedList(string), priority: number, lastModified: string }, { type: 'object' }),
  icons: {
    type: 'list',
    element: object({ ...stringMembers('src', 'mimeType', 'theme'), sizes: coercedList(string) }, { needs: 'src' })
  },
  ...meta
}
const blockTypes: ReadonlySet<unknown> =
  new Set(['text', 'image', 'audio', 'resource_link', 'resource', 'tool_use', 'tool_result'])
/** The shape of a block of a type that MCP does not define. Its members may be anything. */
const otherBlock: Shape = { isObject: true, members: meta }
/** Returns the shape of a block: `known`, or `otherBlock` if the block has another type. */
const blockOf = (known: Shape): Shape => {
  const select = (type: unknown): Shape => typeof type === 'string' && !blockTypes.has(type) ? otherBlock : known
  return {
    ...known,
    select: (text) => select(text.startsWith('{') ? parseSmallMember(text, 'type') : undefined),
    selectParsed: (value) => select(isObject(value) ? value.type : undefined)
  }
}
const knownBlock: Shape = {
  type: 'object',
  isObject: true,
  coerce: asBlock,
  members: blockMembers,
  required: ['type', 'text', 'data', 'mimeType', 'uri', 'name', 'resource']
}
const block = blockOf(knownBlock)
/** The shape of a tool result's content. A single value in place of the list becomes its only block. */
export const contentBlocks = coercedList(block, (text) =>
  /"(?:type|text)"/.test(text) && text.startsWith('{') ? text : asBlock(text))
/** The shape of a sampling message's content, which may be a tool result. */
const samplingContent: Shape = {
  members: { ...blockMembers, content: list({ members: blockMembers }), isError: anyValue }
}
export const samplingMessage: Shape = {
  members: { content: { ...samplingContent, element: samplingContent }, ...meta }
}

/** The shape of a prompt message's content: a single block. A list with one block is replaced by that block. */
const promptContent = blockOf({
  ...knownBlock,
  fallback: asBlock('""'),
  coerce: (text) => {
    const [first = '', ...more] = text.startsWith('[') ? elementsOf(text, 2) : []
    return first.startsWith('{') && more.length === 0 ? mend(first, block, true).text : asBlock(text)
  }
})
const promptMessage: Shape = {
  type: 'object',
  isObject: true,
  coerce: (text) => `{"role":"user","content":${asBlock(text)}}`,
  members: { role: { values: ['"user"', '"assistant"'], fallback: '"user"' }, content: promptContent },
  required: ['role', 'content']
}
export const promptMessages =
  coercedList(promptMessage, (text) => text.startsWith('{') || text.startsWith('"') ? text : undefined)
