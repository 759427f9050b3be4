import multipart from '@fastify/multipart'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../plugins/management/index.ts'
import { createRequireMultipartHook, uploadOptions } from '../multipart.ts'

type Part =
  | { readonly type: 'field', readonly fieldname: string, readonly value: unknown }
  | { readonly type: 'file', readonly fieldname: string, readonly file: AsyncIterable<Buffer> }

/** An upload form. `field`: the name of its file field; `receive`: handles the file and responds. */
interface UploadForm {
  readonly path: string
  readonly field: string
  readonly receive: (request: FastifyRequest, file: AsyncIterable<Buffer>, reply: FastifyReply) => Promise<unknown>
  /** Responds with the form and an error of the API. */
  readonly refuse: (request: FastifyRequest, reply: FastifyReply, error: ApiError) => unknown
}

/** Adds the route of a multipart form. The first part must be the CSRF token, and the second part the file. */
export async function addUploadForm (
  app: FastifyInstance, { path, field, receive, refuse }: UploadForm
): Promise<void> {
  const remainingParts = new WeakMap<FastifyRequest, AsyncIterator<unknown>>()
  await app.register(async (upload) => {
    upload.removeAllContentTypeParsers()
    await upload.register(multipart, uploadOptions(1))
    upload.post(path, {
      config: { effect: 'change' },
      onRequest: createRequireMultipartHook(field),
      // Only the CSRF token is read here. The console's preHandler hook checks it before the handler reads the file.
      preValidation: async (request) => {
        const parts = request.parts()
        remainingParts.set(request, parts)
        const { value: part } = await parts.next() as { value?: Part }
        const token = part?.type === 'field' && part.fieldname === '_csrf' ? part.value : undefined
        request.body = { _csrf: token }
      }
    }, async (request, reply) => {
      const { value: file } = await remainingParts.get(request)?.next() as { value?: Part }
      try {
        if (file?.type !== 'file') throw new ApiError(400, { message: `"${field}": choose a file` })
        return await receive(request, file.file, reply)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        return refuse(request, reply, error)
      }
    })
  })
}
