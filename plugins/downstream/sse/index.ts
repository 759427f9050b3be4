import fp from 'fastify-plugin'
import { SseEndpoint } from './endpoint.ts'

declare module 'fastify' {
  interface FastifyInstance { sse: SseEndpoint }
}

/** `app.sse`: the SSE transport for clients of revision 2024-11-05, beside streamable HTTP. */
export default fp(async (app) => {
  const { sessions, requests } = app.downstream
  const endpoint = new SseEndpoint({ gateway: app.gateway, sessions, requests, messagesPath: `${app.config.basePath}/messages` })
  app.downstream.add(endpoint)
  app.decorate('sse', endpoint)
}, { name: 'sse', dependencies: ['config', 'gateway', 'downstream'] })
