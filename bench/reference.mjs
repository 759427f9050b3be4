// The reference: a node:http pass-through proxy, the least that a Node process between client and upstream can do. The environment
// gives PORT and UPSTREAM, a URL of which host and port are used.
import http from 'node:http'

const upstream = new URL(process.env.UPSTREAM ?? '')
const agent = new http.Agent({ keepAlive: true, maxSockets: 256 })

const server = http.createServer({ keepAliveTimeout: 120_000 }, (request, reply) => {
  const { method, url: path, headers } = request
  const forward = http.request({ host: upstream.hostname, port: upstream.port, method, path, headers, agent }, (answer) => {
    reply.writeHead(answer.statusCode, answer.headers)
    answer.pipe(reply)
  })
  forward.on('error', () => {
    if (!reply.headersSent) reply.writeHead(502)
    reply.end()
  })
  request.pipe(forward)
})
server.listen(Number(process.env.PORT), '127.0.0.1')
