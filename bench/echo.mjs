// The responses of the echo upstream, over HTTP and stdio. It lists TOOLS tools, the first of them `echo`. MODERN=1: in MCP 2026-07-28.

const echo = {
  name: 'echo',
  description: 'Answers with the message it was given',
  inputSchema: { type: 'object', properties: { message: { type: 'string', description: 'What to say' }, size: { type: 'integer' } }, required: ['message'] }
}
const others = Array.from({ length: Math.max(0, Number(process.env.TOOLS ?? 1) - 1) }, (_, i) => ({
  name: `tool_${String(i + 2).padStart(4, '0')}`,
  description: `Tool ${i + 2}: looks up a record by its key and answers with the fields that were asked for`,
  inputSchema: {
    type: 'object',
    properties: {
      key: { type: 'string', description: 'The key of the record' },
      fields: { type: 'array', items: { type: 'string' } },
      limit: { type: 'integer', minimum: 1 }
    },
    required: ['key']
  }
}))
/** @typedef {{ name?: string, protocolVersion?: string, arguments?: { message?: string, size?: number } }} Params */

const filling = 'A line of a result, with "quotes" and an end.\n'.repeat(4_000)
/** The message; with `size`, filled up to so many characters. */
const echoed = ({ message = '', size }) => size === undefined ? message : (message + filling).slice(0, size)

const isModern = process.env.MODERN === '1'
const discovered = '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}'
const listed = JSON.stringify({ tools: [echo, ...others] })

/**
 * The response to a JSON-RPC message as JSON text; undefined for notifications and responses.
 * @param {{ id?: string | number, method?: string, params?: Params }} message
 * @returns {string | undefined}
 */
export function answer ({ id, method, params }) {
  if (id === undefined || method === undefined) return undefined
  const result = (json) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${json}}`
  const error = (code, message) => JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } })
  switch (method) {
    case 'tools/call':
      if (params?.name !== 'echo') return error(-32602, 'Unknown tool')
      return result(`{${isModern ? '"resultType":"complete",' : ''}"content":[{"type":"text","text":${JSON.stringify(echoed(params.arguments ?? {}))}}]}`)
    case 'tools/list': return result(listed)
    case 'ping': return result('{}')
    case 'initialize': return result(JSON.stringify({
      protocolVersion: params?.protocolVersion ?? '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'echo', version: '1.0.0' }
    }))
    case 'server/discover': if (isModern) return result(discovered)
    // falls through
    default: return error(-32601, 'Method not found')
  }
}
