import type { FastifyRequest } from 'fastify'
import { errors, exemptFromRequestTimeout } from '../plugins/base/errors/index.ts'
import { managementLimits } from '../plugins/management/index.ts'

/**
 * Returns the options of `@fastify/multipart` for a form with one file. The file is cut one byte beyond its max size,
 * so that the reader notices that it is too large.
 * @param fields the number of other fields
 */
export const uploadOptions = (fields: number) => ({
  limits: { files: 1, fields, headerPairs: 20, fileSize: managementLimits.bundles.uploadSize + 1 }
})

/**
 * Creates an `onRequest` hook for uploads. `managementLimits.bundles` has their time limits.
 * @param field the name of the file's field, for the error
 * @throws MultipartExpected for a request with another content type
 */
export const createMultipartHook = (field: string) => async (request: FastifyRequest): Promise<void> => {
  if (!/^multipart\/form-data\s*;/i.test(request.headers['content-type'] ?? '')) {
    throw new errors.MultipartExpected(field)
  }
  exemptFromRequestTimeout(request.raw)
}
