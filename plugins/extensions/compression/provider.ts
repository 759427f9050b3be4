import { code, RpcError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import type { Provider } from '../../../protocol/provider.ts'
import type { View } from '../../settings/index.ts'
import type { Originals, OriginalPart } from './originals.ts'

/** The URIs of originals: `tool-hub://originals/<id>/<number>`, for a part of it with `?offset=0&length=20000`, in bytes. */
export const originalsPrefix = 'tool-hub://originals/'

/** Reads originals. A part's `_meta` tells where it begins and ends, and where the next one begins. */
export const originalsProvider = (originals: Originals): Provider & { readonly uriPrefix: string } => ({
  // No server can have this name.
  name: 'tool-hub:originals',
  uriPrefix: originalsPrefix,
  catalogue: () => undefined,
  call: async (exchange) => {
    const uri = String(exchange.params.uri)
    const { key } = (exchange as Exchange<View>).view.principal
    const [whole = '', query = ''] = uri.split('?', 2)
    const asked = new URLSearchParams(query)
    const part = originals.read(whole, key, amountOf(asked, 'offset', 0), amountOf(asked, 'length', Infinity))
    if (part === undefined) {
      const sentence = `Resource not found: ${uri} (originals of compressed results are kept for an hour)`
      throw new RpcError(code.resourceNotFound, sentence, 'unknown-resource')
    }
    return { kind: 'response', id: null, resultText: JSON.stringify({ contents: [contentsOf(uri, part)] }) }
  }
})

function contentsOf (uri: string, { text, mimeType, offset, end, size }: OriginalPart): object {
  const next = end < size ? { 'tool-hub/next': end } : {}
  return { uri, mimeType, text, _meta: { 'tool-hub/offset': offset, 'tool-hub/end': end, 'tool-hub/size': size, ...next } }
}

/** @throws RpcError -32602 */
function amountOf (asked: URLSearchParams, name: string, otherwise: number): number {
  const value = asked.get(name)
  if (value === null) return otherwise
  if (!/^\d{1,15}$/.test(value)) throw new RpcError(code.invalidParams, `Invalid params: "${name}" in the URI must be a number of bytes`)
  return Number(value)
}
