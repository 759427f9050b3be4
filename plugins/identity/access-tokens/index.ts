import fp from 'fastify-plugin'
import type { Clients, Tokens } from '../../../db/ports.ts'
import { AccessTokens } from './access-tokens.ts'

declare module 'fastify' {
  interface FastifyInstance { accessTokens: AccessTokens }
}

/** `app.accessTokens`: the access tokens of the gateway's own authorization server. */
export default fp<{ tokens: Tokens, clients: Clients }>(async (app, { tokens, clients }) => {
  const accessTokens = new AccessTokens(tokens, clients)
  app.decorate('accessTokens', accessTokens)
  app.addHook('onClose', async () => { accessTokens.close() })
}, { name: 'access-tokens' })
