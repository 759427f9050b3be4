import multipart from '@fastify/multipart'
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { exemptFromRequestTimeout } from '../../plugins/base/body/index.ts'
import { errors } from '../../plugins/base/errors/index.ts'
import { ApiError, managementLimits } from '../../plugins/management/index.ts'
import { abortSignalOf } from '../caller.ts'
import type { RequiredOption } from '../../schemas/bundle.ts'
import { showEntries, tabsOf } from './entries.ts'
import { pagesOf } from './page.ts'

interface Uploaded {
  readonly name: string
  readonly config: object
  readonly manifest: { readonly version?: string, readonly description?: string, readonly display_name?: string }
  readonly required: readonly RequiredOption[]
  readonly usedBy: readonly string[]
  readonly warnings: readonly string[]
}

type Part =
  | { readonly type: 'field', readonly fieldname: string, readonly value: unknown }
  | { readonly type: 'file', readonly fieldname: string, readonly file: AsyncIterable<Buffer> }

const path = '/add-a-server/bundle'

/** Page: upload a bundle. The form is multipart: first the CSRF token, then the file. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const lead = 'A local server as one file. Its files are stored; it runs when you add the server.'
  pagesOf(app).page('bundle', { title: 'Bundle', path }, ({ principal }) =>
    ({ lead, tabs: tabsOf(app, principal, 'bundle') }))

  const rest = new WeakMap<FastifyRequest, AsyncIterator<unknown>>()
  await app.register(async (upload) => {
    upload.removeAllContentTypeParsers()
    await upload.register(multipart, {
      limits: { files: 1, fields: 1, headerPairs: 20, fileSize: managementLimits.bundles.uploadSize + 1 }
    })
    upload.post(path, {
      config: { effect: 'change' },
      onRequest: async (request) => {
        if (!/^multipart\/form-data\s*;/i.test(request.headers['content-type'] ?? '')) {
          throw new errors.MultipartExpected()
        }
        exemptFromRequestTimeout(request.raw)
      },
      // The guard of forms compares the token before the file is read.
      preValidation: async (request) => {
        const parts = request.parts()
        rest.set(request, parts)
        const { value: part } = await parts.next() as { value?: Part }
        const token = part?.type === 'field' && part.fieldname === '_csrf' ? part.value : undefined
        request.body = { _csrf: token }
      }
    }, async (request, reply) => {
      const { value: file } = await rest.get(request)?.next() as { value?: Part }
      try {
        if (file?.type !== 'file') throw new ApiError(400, { message: '"mcpbFile": choose a file' })
        const { data } = await kit.api.upload(request, file.file, abortSignalOf(reply))
        const { name, config, manifest, required, usedBy, warnings } = data as Uploaded
        const uses = usedBy.length === 0
          ? []
          : [`It replaced the former version, which ${usedBy.join(', ')} runs until it is reloaded`]
        return showEntries(app, reply, {
          entries: [{
            index: 0,
            name,
            config: JSON.stringify(config, undefined, 2),
            isChosen: true,
            remarks: [...warnings, ...uses],
            variables: required.map(({ key, title: label = key, description, multiple, sensitive }) => ({
              key: `user_config.${key}`,
              title: label,
              isNeeded: true,
              ...description !== undefined && { description },
              ...multiple === true && { multiple },
              ...sensitive === true && { isSecret: true }
            }))
          }],
          source: {
            title: [manifest.display_name ?? name, manifest.version].filter((each) => each !== undefined).join(' '),
            text: manifest.description ?? 'Look at the command before you add it: nobody has checked this program.',
            back: `${kit.base}${path}`
          }
        })
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        return kit.renderer.send(reply, 'bundle', {
          title: 'Bundle',
          lead,
          tabs: tabsOf(app, request.principal, 'bundle'),
          errors: { mcpbFile: error.message.replace(/^"mcpbFile": /, '') }
        }, error.statusCode)
      }
    })
  })
}
export default routes
