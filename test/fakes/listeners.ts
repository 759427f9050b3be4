// Servers of HTTP, TLS and TCP that tests look at from behind.
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'

/** A port that answers nothing and counts who comes. */
export async function silent (t: Cleanup, port = 0, host = '127.0.0.1'): Promise<{ port: number, connections: () => number }> {
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => { connections++; sockets.add(socket.on('error', () => {})) })
  await new Promise<void>((resolve) => { server.listen(port, host, resolve) })
  t.after(() => { for (const socket of sockets) socket.destroy(); server.close() })
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}
export async function web (t: Cleanup, answer: RequestListener, host = '127.0.0.1'): Promise<{ port: number, url: string }> {
  const server = createHttpServer(answer)
  const port = await listen(t, server, host)
  return { port, url: `http://${host}:${port}` }
}

/** A TLS port without a certificate, and the names that it was asked for. */
export async function tls (t: Cleanup): Promise<{ port: number, names: string[] }> {
  const names: string[] = []
  const server = createTlsServer({ SNICallback: (name, callback) => { names.push(name); callback(new Error('none')) } })
  server.on('tlsClientError', () => {})
  return { port: await listen(t, server), names }
}

/** An HTTP proxy that opens tunnels, and what it was asked for. */
export async function proxy (
  t: Cleanup,
  refuse = false
): Promise<{ port: number; url: string; asked: Array<{ target: string; authorization: string | undefined }> }> {
  const asked: Array<{ target: string; authorization: string | undefined }> = []
  const server = createHttpServer((_request, response) => { response.writeHead(501).end() })
  server.on('connect', (request, socket: Socket) => {
    asked.push({ target: request.url ?? '', authorization: request.headers['proxy-authorization'] })
    if (refuse) {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return
    }
    // whatever name it is, it is here
    const there = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      there.pipe(socket).pipe(there)
    })
    for (const end of [there, socket]) end.on('error', () => { there.destroy(); socket.destroy() })
  })
  const port = await listen(t, server)
  return { port, url: `http://127.0.0.1:${port}`, asked }
}
