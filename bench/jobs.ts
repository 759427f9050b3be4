import type { Job } from './drive.ts'

/** `tools/call` of `echo`, with a different message each time. */
export const echoCall: Job = {
  request: (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"message":"${message(id)}"}}}`,
  isCorrect: (result, id) => {
    const { content } = result as { content?: Array<{ type?: string, text?: string }> }
    return content?.length === 1 && content[0]?.type === 'text' && content[0].text === message(id)
  }
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
