import type { Job } from './drive.ts'
import { clientInfo, modernVersion } from './session.ts'

/** `tools/call` of `echo`, with a different message each time. */
export const echoCall: Job = {
  request: (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"message":"${message(id)}"}}}`,
  isCorrect: (result, id) => {
    const { content } = result as { content?: Array<{ type?: string, text?: string }> }
    return content?.length === 1 && content[0]?.type === 'text' && content[0].text === message(id)
  }
}

const envelope = JSON.stringify({
  'io.modelcontextprotocol/protocolVersion': modernVersion,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {}
})

/** The same call in the revision 2026-07-28. */
export const modernEchoCall: Job = {
  request: (id) => {
    const params = `{"name":"echo","arguments":{"message":"${message(id)}"},"_meta":${envelope}}`
    return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`
  },
  isCorrect: echoCall.isCorrect,
  modern: { method: 'tools/call', name: 'echo' }
}

/** The same call of `echo` over plain HTTP: POST /api/tools/:server/echo. */
export const plainEchoCall: Job = {
  request: (id) => `{"message":"${message(id)}"}`,
  isCorrect: echoCall.isCorrect,
  isPlain: true
}

const message = (id: number): string => `call ${id} of the bench, a short line of plain text`

/** `tools/list` with `count` tools on one page. */
export function toolList (count: number): Job {
  return {
    request: (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{}}`,
    isCorrect: (result) => (result as { tools?: unknown[] }).tools?.length === count
  }
}
