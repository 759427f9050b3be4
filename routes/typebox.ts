import type { FastifyPluginAsync, FastifyPluginOptions, FastifyTypeProvider, RawServerDefault } from 'fastify'
import type { Static, TSchema } from '@sinclair/typebox'

/** Types of handlers from their TypeBox schemas. */
interface TypeBoxTypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown
  serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown
}

export type FastifyPluginAsyncTypebox<Options extends FastifyPluginOptions = Record<never, never>> = FastifyPluginAsync<
  Options,
  RawServerDefault,
  TypeBoxTypeProvider
>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The effect of a request: READONLY, OAuth scopes, Origin checks and HEAD derive from it. */
    effect?: 'read' | 'change' | 'run'
  }
}
