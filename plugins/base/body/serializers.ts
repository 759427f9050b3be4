import fastJson from 'fast-json-stringify'
import type { FastifySerializerCompiler } from 'fastify'

/**
 * The serializer compiler of all routes, for their answers. Schemas are compiled at their first use, as those of requests are: all of
 * them together would take a tenth of the time that the program takes to start.
 */
export const compileSerializer: FastifySerializerCompiler<object> = ({ schema }) => {
  let write: ((value: unknown) => string) | undefined
  return (value: unknown) => {
    write ??= fastJson(schema) as (value: unknown) => string
    return write(value)
  }
}
