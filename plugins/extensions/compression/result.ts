import { elementsOf, isDeeperThan, memberOf, withMembers } from '../../../protocol/json.ts'
import { compressText, fitRendering, type CompressionOptions } from './compress.ts'
import { renderAsValidJson } from './strategies/json.ts'
import type { CountTokens } from './tokens.ts'

/** A text before it was compressed. */
interface Original { text: string, mimeType: string }

interface CompressedResult {
  /** The result as JSON text. Each compressed block is followed by a link to its original. */
  result: string
  originals: Original[]
}

export interface ResultCompressionOptions extends CompressionOptions {
  /** Whether `structuredContent` is shortened too. */
  structuredContent: boolean
  /** Prefix of the URIs of originals; the index of the original is appended. */
  uriPrefix: string
}

/** Max nesting depth of a result; results with a greater depth are not compressed. */
const maxDepth = 500

/**
 * Compresses the text blocks of a successful tool result and, if requested, `structuredContent`. Other members keep
 * their JSON text. Errors are not compressed.
 * @param result the result of `tools/call`, as JSON text
 * @param count counts tokens
 * @returns undefined if nothing became shorter
 */
export function compressResult (
  result: string, options: ResultCompressionOptions, count: CountTokens
): CompressedResult | undefined {
  if (isDeeperThan(result, maxDepth) || memberOf(result, 'isError') === 'true') return undefined
  const originals: Original[] = []
  const keep = (original: Original): string => {
    originals.push(original)
    return linkTo(original, `${options.uriPrefix}${originals.length - 1}`)
  }
  const blocks = elementsOf(memberOf(result, 'content') ?? '[]').flatMap((block) => {
    if (memberOf(block, 'type') !== '"text"') return [block]
    const parsed: unknown = JSON.parse(memberOf(block, 'text') ?? '""')
    if (typeof parsed !== 'string') return [block]
    // An original is stored in UTF-8, which cannot encode a lone surrogate.
    const text = parsed.toWellFormed()
    const compressed = compressText(text, options, count)
    if (compressed === undefined) return [block]
    const link = keep({ text, mimeType: compressed.strategy === 'json' ? 'application/json' : 'text/plain' })
    return [withMembers(block, { text: JSON.stringify(compressed.text) }), link]
  })
  const changes: Record<string, string> = {}
  const structured = options.structuredContent
    ? shortenStructuredContent(memberOf(result, 'structuredContent'), options, count)
    : undefined
  if (structured !== undefined) {
    changes.structuredContent = structured.text
    blocks.push(keep({ text: structured.original, mimeType: 'application/json' }))
  }
  if (originals.length === 0) return undefined
  return { result: withMembers(result, { ...changes, content: `[${blocks.join(',')}]` }), originals }
}

function shortenStructuredContent (
  original: string | undefined,
  options: CompressionOptions,
  count: CountTokens
): { text: string, original: string } | undefined {
  if (original === undefined || count(original, options.minTokens) < options.minTokens) return undefined
  const renderings = renderAsValidJson(original)
  const text = fitRendering(renderings, options.maxOutputTokens, count) ?? renderings.render(0, 2 * original.length)
  return text !== undefined && text.length < original.length ? { text, original } : undefined
}

const linkTo = ({ text, mimeType }: Original, uri: string): string =>
  JSON.stringify({
    type: 'resource_link',
    uri,
    name: 'original',
    title: 'The text before it was compressed',
    description:
      'Can be read for an hour. For a part of it, add ?offset=0&length=20000 (in bytes); the result says where the ' +
      'next part begins.',
    mimeType,
    size: Buffer.byteLength(text)
  })
