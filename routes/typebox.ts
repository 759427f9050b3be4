import type { FastifyPluginAsync, FastifyPluginOptions, FastifyTypeProvider, RawServerDefault } from 'fastify'
import type { Static, TSchema } from '@sinclair/typebox'

/** Makes Fastify infer the types of a handler's request and response from the TypeBox schemas of its route. */
interface TypeBoxTypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown
  serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown
}

/** A Fastify plugin whose route handlers are typed by their TypeBox schemas. */
export type FastifyPluginAsyncTypebox<Options extends FastifyPluginOptions = Record<never, never>> = FastifyPluginAsync<
  Options,
  RawServerDefault,
  TypeBoxTypeProvider
>

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * What a request does: it reads, changes stored data, or runs something (a tool, a login). READONLY, the required
     * OAuth scopes, Origin checks and the handling of HEAD depend on it.
     */
    effect?: 'read' | 'change' | 'run'
  }
}
