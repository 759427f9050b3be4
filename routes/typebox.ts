import type { FastifyPluginAsync, FastifyPluginOptions, FastifyTypeProvider, RawServerDefault } from 'fastify'
import type { Static, TSchema } from '@sinclair/typebox'

/** Infers the types of requests and responses in handlers from the TypeBox schemas of their routes. */
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
    /** The effect of a request, from which READONLY, OAuth scopes, Origin checks and HEAD are derived. */
    effect?: 'read' | 'change' | 'run'
  }
}
