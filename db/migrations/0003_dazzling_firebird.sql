CREATE TABLE "upstream_tokens" (
	"key" text PRIMARY KEY NOT NULL,
	"server" text NOT NULL,
	"holder" text NOT NULL,
	"version" text,
	"data" jsonb,
	"sealed" text,
	"claimed" timestamp with time zone,
	"changed" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "upstream_tokens_server" ON "upstream_tokens" USING btree ("server");--> statement-breakpoint
CREATE INDEX "upstream_tokens_holder" ON "upstream_tokens" USING btree ("holder");--> statement-breakpoint
CREATE INDEX "upstream_tokens_changed" ON "upstream_tokens" USING btree ("changed");