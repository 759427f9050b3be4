/** What the management API's own OpenAPI document says of itself; the routes say the rest. */
export const describeApi = (version: string, basePath: string) => ({
  openapi: '3.1.0',
  info: { title: 'Tool-Hub management API', version, description: 'Log in with `POST /api/auth/login` and send the token in `x-auth-token`, or send a system bearer key. Answers are `{success, data?, message?}`; failures `{success: false, message, code?, errors?}`.' },
  servers: [{ url: basePath === '' ? '/' : basePath }],
  components: {
    securitySchemes: {
      login: { type: 'apiKey' as const, in: 'header' as const, name: 'x-auth-token', description: 'The token of POST /api/auth/login' },
      bearerKey: { type: 'http' as const, scheme: 'bearer', description: 'A bearer key of kind `system` with access type `all`' }
    }
  },
  security: [{ login: [] }, { bearerKey: [] }] as Array<Record<string, string[]>>
})
