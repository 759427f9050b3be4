import fp from 'fastify-plugin'

/** Lists and runs all items, whoever provides them, for all ways of asking. */
export default fp(async (app) => {
  await app.register(import('./parts.ts'))
}, { name: 'gateway-wing', dependencies: ['settings-wing'] })
