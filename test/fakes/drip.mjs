// A stdio MCP server that writes single bytes to stdout and stderr, 80,000 a second together, from the call of its tool `begin` until that
// of `end`: one endless message, and one endless line of errors.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const answer = (id, result) => { process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`) }
const tools = ['begin', 'end'].map((name) => ({ name, inputSchema: { type: 'object' } }))
let dripping

/** A full pipe is the gateway's right. */
const write = (descriptor) => { try { writeSync(descriptor, 'x') } catch {} }

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'initialize') {
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'drip', version: '1' } })
  } else if (method === 'tools/list') answer(id, { tools })
  else if (method === 'tools/call') {
    clearInterval(dripping)
    // What was a part of the endless message would be lost.
    if (params.name === 'end') process.stdout.write('\n')
    answer(id, { content: [] })
    if (params.name === 'end') return
    dripping = setInterval(() => { for (let n = 0; n < 200; n++) for (const descriptor of [1, 2]) write(descriptor) }, 5)
  } else answer(id, {})
})
