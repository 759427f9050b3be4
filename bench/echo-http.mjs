// The echo upstream over streamable HTTP, on any path, with responses in JSON. It listens on PORT of the environment.
// SILENT=1: accepts connections and reads from them, and never responds.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createServer as createSilence } from 'node:net'
import { answer } from './echo.mjs'

const silence = (socket) => {
  socket.on('error', () => {})
  socket.resume()
}

const post = (request, reply) => {
  const chunks = []
  request.on('data', (chunk) => { chunks.push(chunk) })
  request.on('end', () => {
    const message = JSON.parse(Buffer.concat(chunks).toString())
    const text = answer(message)
    if (text === undefined) return reply.writeHead(202, { 'content-length': 0 }).end()
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    if (message.method === 'initialize') headers['mcp-session-id'] = randomUUID()
    reply.writeHead(200, headers).end(text)
  })
}

const serve = (request, reply) => {
  if (request.method === 'POST') return post(request, reply)
  request.resume()
  reply.writeHead(request.method === 'DELETE' ? 200 : 405, { 'content-length': 0 }).end()
}

const server = process.env.SILENT === '1' ? createSilence(silence) : createServer({ keepAliveTimeout: 120_000 }, serve)
server.listen(Number(process.env.PORT), '127.0.0.1')
