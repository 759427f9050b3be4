import type { FastifyRequest } from 'fastify'
import { errors, exemptFromRequestTimeout } from '../plugins/base/errors/index.ts'
import { managementLimits } from '../plugins/management/index.ts'

/**
 * Returns the options of `@fastify/multipart` for a form with one file. A file that is too large is cut one byte beyond
 * the max size, so that the reader of the file notices the excess.
 * @param fields max number of fields that are not files
 */
export const uploadOptions = (fields: number) => ({
  limits: { files: 1, fields, headerPairs: 20, fileSize: managementLimits.bundles.uploadSize + 1 }
})

/**
 * Creates an `onRequest` hook that accepts only multipart forms, and exempts these requests from the request timeout:
 * the reader of the file applies the timeouts in `managementLimits.bundles`. The hook throws MultipartExpected for
 * another content type.
 * @param field the name of the file's field, for the error message
 */
export const createRequireMultipartHook = (field: string) => async (request: FastifyRequest): Promise<void> => {
  if (!/^multipart\/form-data\s*;/i.test(request.headers['content-type'] ?? '')) {
    throw new errors.MultipartExpected(field)
  }
  exemptFromRequestTimeout(request.raw)
}
