// SPDX-License-Identifier: Apache-2.0
// Generated from schema/experiment.json by `make reference`.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What `profllm run` writes of one experiment. */
export interface ExperimentDocument {
	schema_version: 1;
	run_id: string;
	suite: string | null;
	timestamp: string;
	duration: number;
	config: {
		name: string;
		mode: 'serve' | 'throughput' | 'latency' | 'startup' | 'prioritization' | 'prefix-caching' |
			'long-document-qa' | 'structured-output' | 'multi-turn';
		repeat: number;
		repeats: number;
		hash: string;
		configured_hash: string;
		server: {
			[key: string]: unknown;
		} | null;
		server_defaults: {
			version: string | null;
			reason: string | null;
			reported: {
				[key: string]: unknown;
			};
			not_reported: string[];
		} | null;
		servers: {
			name: string;
			role: 'serve' | 'prefill' | 'decode' | 'proxy' | 'cache';
			is_serving: boolean;
			command: string[] | null;
			url: string | null;
			version: string | null;
			host: string | null;
			port: number | null;
			arguments: {
				[key: string]: unknown;
			};
			extra_args: string[];
			env: {
				[key: string]: unknown;
			};
			container: {
				[key: string]: unknown;
			} | null;
			after: string[];
			ready: 'health' | 'port' | 'log' | 'started';
			ready_timeout_s: number | null;
			grace_s: number | null;
			gpus: {
				index: number;
				uuid: string | null;
				name: string | null;
			}[];
			startup_s: number | null;
			reused: boolean;
			started_by?: string | null;
			capacity: {
				[key: string]: unknown;
			} | null;
			log: string | null;
			has_ended: boolean;
		}[];
		benchmark: {
			dataset_name?: string | null;
			num_prompts?: number | null;
			request_rate?: number | string | null;
			max_concurrency?: number | null;
			model?: string | null;
			backend?: string | null;
			seed?: number | null;
			burstiness?: number | null;
			[key: string]: unknown;
		} | null;
		resources: {
			gpus: string | number | string[];
			shared: boolean;
			memory_free: number | null;
			wait_s: number | string | null;
			ports: number[];
		};
		telemetry: {
			enabled: boolean;
			interval_s: number | null;
			gpu: boolean;
			host: boolean;
			process: boolean;
			server: boolean;
		};
		tags: {
			[key: string]: unknown;
		};
		given: {
			[key: string]: unknown;
		} | null;
	};
	results: {
		completed_requests: number | null;
		failed_requests: number | null;
		request_throughput: number | null;
		output_throughput: number | null;
		total_token_throughput: number | null;
		median_ttft_ms: number | null;
		p95_ttft_ms: number | null;
		median_tpot_ms: number | null;
		p95_tpot_ms: number | null;
		capacity?: {
			[key: string]: unknown;
		};
		throughput?: {
			requests_per_second: number | null;
			tokens_per_second: number | null;
			[key: string]: unknown;
		};
		latency?: {
			avg_latency: number | null;
			[key: string]: unknown;
		};
		startup?: {
			[key: string]: unknown;
		};
		prioritization?: {
			[key: string]: unknown;
		};
		'prefix-caching'?: {
			[key: string]: unknown;
		};
		'long-document-qa'?: {
			[key: string]: unknown;
		};
		date?: string;
		endpoint_type?: string;
		backend?: string;
		label?: string | null;
		model_id?: string;
		tokenizer_id?: string | null;
		num_prompts?: number;
		request_rate?: number | string | null;
		burstiness?: number | null;
		max_concurrency?: number | null;
		ramp_up_strategy?: string;
		ramp_up_start_rps?: number;
		ramp_up_end_rps?: number;
		rps_change_events?: {
			rps?: number;
			timestamp?: string;
		}[];
		duration?: number | null;
		total_input_tokens?: number;
		total_output_tokens?: number;
		total_cached_tokens?: number;
		capacity_request_rate?: number | null;
		capacity_request_rate_low?: number | null;
		capacity_request_rate_high?: number | null;
		capacity_concurrency?: number | null;
		capacity_concurrency_low?: number | null;
		capacity_concurrency_high?: number | null;
		request_goodput?: number | null;
		max_output_tokens_per_s?: number | null;
		max_concurrent_requests?: number;
		rtfx?: number | null;
		total_input_sequences?: number;
		input_sequence_throughput?: number | null;
		mean_ttft_ms?: number | null;
		mean_tpot_ms?: number | null;
		mean_itl_ms?: number | null;
		mean_e2el_ms?: number | null;
		mean_client_queue_time_ms?: number | null;
		mean_e2el_including_client_queue_ms?: number | null;
		median_itl_ms?: number | null;
		median_e2el_ms?: number | null;
		median_client_queue_time_ms?: number | null;
		median_e2el_including_client_queue_ms?: number | null;
		std_ttft_ms?: number | null;
		std_tpot_ms?: number | null;
		std_itl_ms?: number | null;
		std_e2el_ms?: number | null;
		std_client_queue_time_ms?: number | null;
		std_e2el_including_client_queue_ms?: number | null;
		[key: `p${number}_ttft_ms`]: number | null;
		[key: `p${number}_tpot_ms`]: number | null;
		[key: `p${number}_itl_ms`]: number | null;
		[key: `p${number}_e2el_ms`]: number | null;
		[key: `p${number}_client_queue_time_ms`]: number | null;
		[key: `p${number}_e2el_including_client_queue_ms`]: number | null;
		input_lens?: (number | null)[];
		output_lens?: (number | null)[];
		ttfts?: (number | null)[];
		itls?: (number | null)[][];
		latencies?: (number | null)[];
		start_times?: (number | null)[];
		queue_times?: (number | null)[];
		generated_texts?: (string | null)[];
		errors?: (string | null)[];
		probe_completed?: number;
		probe_failed?: number;
		probe_median_e2el_ms?: number | null;
		probe_p99_e2el_ms?: number | null;
		probe_max_e2el_ms?: number | null;
		spec_decode_acceptance_rate?: number | null;
		spec_decode_acceptance_length?: number | null;
		spec_decode_num_drafts?: number;
		spec_decode_draft_tokens?: number;
		spec_decode_accepted_tokens?: number;
		spec_decode_per_position_acceptance_rates?: (number | null)[];
		diffusion_committed_throughput?: number | null;
		diffusion_steps_per_canvas?: number | null;
		diffusion_committed_per_step?: number | null;
		diffusion_committed_tokens?: number;
		diffusion_denoising_steps?: number;
		diffusion_canvas_positions?: number;
		sessions?: {
			n?: number;
			completed?: number;
			failed?: number;
			unfinished?: number;
			turns?: number;
			turns_completed?: number;
			turns_failed?: number;
			turns_cancelled?: number;
			turns_unsent?: number;
			bad_tool_calls?: number;
			throughput?: number | null;
			goodput?: number | null;
			turns_per_session?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			duration_s?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			serving_s?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			gap_s?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			gap_lag_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			ttft_first_turn_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			ttft_later_turns_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			context_growth_tokens?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			cached_share_by_session?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			context_source?: string;
			context_slope_ms?: number | null;
			context_slope_error_ms?: number | null;
			cached_share?: number | null;
			reusable_share?: number | null;
			reuse_efficiency?: number | null;
			ttft_growth_per_turn_ms?: number | null;
			ttft_growth_error_per_turn_ms?: number | null;
			later_cached_share?: number | null;
			turns_summary?: string | null;
		};
		per_turn_metrics?: {
			turn_index?: number;
			num_samples?: number;
			completed?: number;
			failed?: number;
			total_input_tokens?: number;
			total_output_tokens?: number;
			duration?: number | null;
			request_throughput?: number | null;
			input_throughput?: number | null;
			output_throughput?: number | null;
			total_token_throughput?: number | null;
			mean_ttft_ms?: number | null;
			mean_tpot_ms?: number | null;
			mean_itl_ms?: number | null;
			mean_e2el_ms?: number | null;
			mean_client_queue_time_ms?: number | null;
			mean_e2el_including_client_queue_ms?: number | null;
			median_ttft_ms?: number | null;
			median_tpot_ms?: number | null;
			median_itl_ms?: number | null;
			median_e2el_ms?: number | null;
			median_client_queue_time_ms?: number | null;
			median_e2el_including_client_queue_ms?: number | null;
			std_ttft_ms?: number | null;
			std_tpot_ms?: number | null;
			std_itl_ms?: number | null;
			std_e2el_ms?: number | null;
			std_client_queue_time_ms?: number | null;
			std_e2el_including_client_queue_ms?: number | null;
			[key: `p${number}_ttft_ms`]: number | null;
			[key: `p${number}_tpot_ms`]: number | null;
			[key: `p${number}_itl_ms`]: number | null;
			[key: `p${number}_e2el_ms`]: number | null;
			[key: `p${number}_client_queue_time_ms`]: number | null;
			[key: `p${number}_e2el_including_client_queue_ms`]: number | null;
			cached_share?: number | null;
			context_tokens?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			cached_tokens?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
		}[];
		profllm?: {
			schema_version?: number;
			version?: string;
			build?: string | null;
			transport?: string | null;
			http_version?: string | null;
			dataset?: string | null;
			chat_template?: string | null;
			workload_hash?: string | null;
			segment_stamps?: {
				events?: number;
				dropped?: number;
				events_per_segment?: number | null;
				unused?: string | null;
			};
			capture?: {
				source?: string;
				packets?: number;
				dropped?: number;
				holes?: number;
				cut_packets?: number;
				connections?: number;
				joined?: number;
				tls?: number;
				http2?: number;
				lost?: number;
				cut?: number;
				abandoned?: number;
				other?: number;
				beyond?: number;
				unread?: number;
				whole?: number;
				without_usage?: number;
				counted?: number;
			};
			round_trip_ms?: number | null;
			threads?: number;
			processes?: number;
			clock_error_ms?: number | null;
			warm_connections?: number;
			hosts?: number;
			start_ns?: number;
			stop_ns?: number;
			interrupted?: boolean;
			cancelled?: number;
			given_up?: number;
			aborted?: string | null;
			time_limit_s?: number | null;
			used_up_s?: number | null;
			prompt_salt?: string | null;
			prompt_salt_key?: string | null;
			repeat_count?: number;
			repeat_order?: string | null;
			repeated_requests?: number;
			warmup_pass?: string | null;
			warmup_pass_requests?: number;
			ideal_prefix_reuse?: number | null;
			trace?: {
				format?: string | null;
				speedup?: number | null;
				planned_span_s?: number | null;
				sent_span_s?: number | null;
				rate_share?: number | null;
				late_share?: number | null;
				ideal_hit_rate?: number | null;
				prefix_exact?: number | null;
			};
			endpoints?: {
				url?: string;
				requests?: number;
				completed?: number;
				failed?: number;
				mean_ttft_ms?: number | null;
			}[];
			runs?: {
				count?: number;
				saved?: number;
				metrics?: {
					name?: string;
					mean?: number | null;
					sd?: number | null;
					min?: number | null;
					max?: number | null;
					cv?: number | null;
					values?: (number | null)[];
				}[];
			};
			failed?: number;
			roles?: {
				role?: string;
				host?: string | null;
				gpus?: number | null;
			}[];
			verdicts?: {
				ttft?: string;
				tpot?: string;
				itl?: string;
				e2el?: string;
				request_throughput?: string;
				request_goodput?: string;
				input_throughput?: string;
				output_throughput?: string;
				total_token_throughput?: string;
			};
			notes?: {
				code?: string;
				text?: string;
			}[];
			percentiles?: {
				metric?: string;
				n?: number;
				low_ms?: number | null;
				high_ms?: number | null;
				n_needed?: number;
				dispersion?: number | null;
				correlation?: number | null;
				marks?: (string | null)[];
			}[];
			error_budget?: {
				source?: string;
				age_s?: number | null;
				stamps?: string;
				streams?: number;
				events_per_s?: number | null;
				rounds?: number;
				round_requests?: number;
				round_events?: number;
				ttft?: {
					mean_ms?: number | null;
					p99_ms?: number | null;
					low_ms?: number | null;
					high_ms?: number | null;
				};
				itl?: {
					mean_ms?: number | null;
					p99_ms?: number | null;
					low_ms?: number | null;
					high_ms?: number | null;
				};
				e2el?: {
					mean_ms?: number | null;
					p99_ms?: number | null;
					low_ms?: number | null;
					high_ms?: number | null;
				};
				send_ms?: number | null;
				kernel_ms?: number | null;
				late_ms?: number | null;
				signs_ttft_ms?: number | null;
				signs_itl_ms?: number | null;
			} | null;
			settled?: {
				requests?: number;
				left_out_start?: number;
				left_out_end?: number;
				start_s?: number | null;
				end_s?: number | null;
				problem?: string | null;
				ttft_ms?: {
					mean?: number | null;
					low?: number | null;
					high?: number | null;
					n?: number;
					n_effective?: number | null;
					n_needed?: number;
					state?: string;
				};
				tpot_ms?: {
					mean?: number | null;
					low?: number | null;
					high?: number | null;
					n?: number;
					n_effective?: number | null;
					n_needed?: number;
					state?: string;
				};
				itl_ms?: {
					mean?: number | null;
					low?: number | null;
					high?: number | null;
					n?: number;
					n_effective?: number | null;
					n_needed?: number;
					state?: string;
				};
				e2el_ms?: {
					mean?: number | null;
					low?: number | null;
					high?: number | null;
					n?: number;
					n_effective?: number | null;
					n_needed?: number;
					state?: string;
				};
				request_throughput?: {
					mean?: number | null;
					low?: number | null;
					high?: number | null;
					n?: number;
					n_effective?: number | null;
					n_needed?: number;
					state?: string;
				};
				output_throughput?: {
					mean?: number | null;
					low?: number | null;
					high?: number | null;
					n?: number;
					n_effective?: number | null;
					n_needed?: number;
					state?: string;
				};
			};
			attempted?: {
				requests?: number;
				succeeded?: number;
				failed?: number;
				cancelled?: number;
				unsent?: number;
				good_share?: number | null;
				requests_in_tpot?: number;
				requests_in_itl?: number;
				ttft_known?: number;
				ttft_censored?: number;
				e2el_known?: number;
				e2el_censored?: number;
				percentiles?: {
					metric?: string;
					low_ms?: number | null;
					high_ms?: number | null;
				}[];
			};
			e2el_from_due_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			ttft_answer_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			ttft_content_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			ttft_with_connect_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			best_tpot_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			itl_event_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			itl_token_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			itl_segment_ms?: {
				n?: number;
				mean?: number | null;
				p50?: number | null;
				p99?: number | null;
				max?: number | null;
			} | null;
			new_connections?: number;
			retries?: number;
			token_events?: number;
			late_shared_read_share?: number | null;
			tokens_per_event?: number | null;
			slow_gaps?: {
				arrivals?: number;
				slow?: number;
				typical_ms?: number | null;
				limit_ms?: number | null;
				server?: {
					n?: number;
					share?: number | null;
					p99_itl_without_ms?: number | null;
				};
				delivery?: {
					n?: number;
					share?: number | null;
					p99_itl_without_ms?: number | null;
				};
				client?: {
					n?: number;
					share?: number | null;
					p99_itl_without_ms?: number | null;
				};
				unknown?: {
					n?: number;
					share?: number | null;
					p99_itl_without_ms?: number | null;
				};
			} | null;
			requests_with_usage?: number;
			requests_counted?: number;
			requests_count_unknown?: number;
			requests_usage_ignored?: number;
			requests_usage_refused?: number;
			requests_count_short?: number;
			requests_longer_than_asked?: number;
			requests_shorter_than_asked?: number;
			requests_role_first?: number;
			best_output_tokens?: number;
			best_input_tokens?: number;
			best_output_throughput?: number | null;
			finish_reasons?: {
				none?: number;
				stop?: number;
				length?: number;
				tool_calls?: number;
				content_filter?: number;
				abort?: number;
				error?: number;
				other?: number;
			};
			correctness?: {
				requests?: number;
				constrained?: number;
				scored?: number;
				correct?: number;
				constrained_correct_rate?: number | null;
				unconstrained_correct_rate?: number | null;
				correct_rate_upstream?: number | null;
				wrong?: {
					parse?: number;
					schema?: number;
					no_match?: number;
					truncated?: number;
				};
			} | null;
			input_throughput?: number | null;
			cached_tokens?: number;
			cached_share?: number | null;
			server?: {
				not_read?: string | null;
				scrapes?: number;
				failed_scrapes?: number;
				running?: {
					n?: number;
					min?: number | null;
					mean?: number | null;
					max?: number | null;
					last?: number | null;
				} | null;
				waiting?: {
					n?: number;
					min?: number | null;
					mean?: number | null;
					max?: number | null;
					last?: number | null;
				} | null;
				kv_usage?: {
					n?: number;
					min?: number | null;
					mean?: number | null;
					max?: number | null;
					last?: number | null;
				} | null;
				prefix_queries?: number | null;
				prefix_hits?: number | null;
				prefix_hit_rate?: number | null;
				preemptions?: number | null;
				prompt_tokens?: number | null;
				generation_tokens?: number | null;
				each?: {
					url?: string | null;
					scrapes?: number;
					failed_scrapes?: number;
					running?: {
						n?: number;
						min?: number | null;
						mean?: number | null;
						max?: number | null;
						last?: number | null;
					} | null;
					waiting?: {
						n?: number;
						min?: number | null;
						mean?: number | null;
						max?: number | null;
						last?: number | null;
					} | null;
					kv_usage?: {
						n?: number;
						min?: number | null;
						mean?: number | null;
						max?: number | null;
						last?: number | null;
					} | null;
					prefix_queries?: number | null;
					prefix_hits?: number | null;
					prefix_hit_rate?: number | null;
					preemptions?: number | null;
					prompt_tokens?: number | null;
					generation_tokens?: number | null;
				}[];
			};
			derived?: {
				gpu_count?: number;
				output_throughput_per_gpu?: number | null;
				total_token_throughput_per_gpu?: number | null;
				output_throughput_per_user?: number | null;
				output_tokens_per_s_per_kw?: number | null;
				gpu_price_per_hour?: number | null;
				cost_per_million_output_tokens?: number | null;
				cost_per_million_tokens?: number | null;
			};
			steady_state?: {
				window?: {
					start_s?: number | null;
					end_s?: number | null;
					duration_s?: number | null;
					target_concurrency?: number;
					threshold?: number | null;
					threshold_abs?: number;
					observed_peak?: number;
					requests_started_in_window?: number;
					requests_completed_in_window?: number;
					requests_total?: number;
					warning?: string | null;
				};
				request_throughput?: number | null;
				input_throughput?: number | null;
				output_throughput?: number | null;
				total_token_throughput?: number | null;
				mean_ttft_ms?: number | null;
				median_ttft_ms?: number | null;
				percentiles_ttft_ms?: (number | null)[][];
				mean_tpot_ms?: number | null;
				median_tpot_ms?: number | null;
				p90_tpot_ms?: number | null;
				p99_tpot_ms?: number | null;
			};
			priorities?: {
				priority?: number;
				requests?: number;
				completed?: number;
				failed?: number;
				ttft_ms?: {
					n?: number;
					mean?: number | null;
					p50?: number | null;
					p99?: number | null;
					max?: number | null;
				} | null;
				tpot_ms?: {
					n?: number;
					mean?: number | null;
					p50?: number | null;
					p99?: number | null;
					max?: number | null;
				} | null;
				e2el_ms?: {
					n?: number;
					mean?: number | null;
					p50?: number | null;
					p99?: number | null;
					max?: number | null;
				} | null;
				queue_ms?: {
					n?: number;
					mean?: number | null;
					p50?: number | null;
					p99?: number | null;
					max?: number | null;
				} | null;
			}[];
			failures?: {
				category?: string;
				count?: number;
				examples?: {
					count?: number;
					text?: string;
				}[];
				other_texts?: number;
			}[];
			series?: {
				step_s?: number | null;
				tracks?: {
					key?: string;
					t_s?: (number | null)[];
					y?: (number | null)[];
					min?: (number | null)[];
					max?: (number | null)[];
				}[];
				failed_s?: (number | null)[];
			};
			sketches?: {
				p?: (number | null)[];
				metrics?: {
					metric?: string;
					n?: number;
					value_ms?: (number | null)[];
				}[];
				by_prompt?: {
					prompt_tokens?: (number | null)[];
					ttft_ms?: (number | null)[];
				};
			};
			requests?: {
				request_id?: (string | null)[];
				due_ns?: (number | null)[];
				connect_ns?: (number | null)[];
				connected_ns?: (number | null)[];
				session?: (number | null)[];
				turn?: (number | null)[];
				sent_ns?: (number | null)[];
				first_byte_ns?: (number | null)[];
				first_event_ns?: (number | null)[];
				first_reasoning_ns?: (number | null)[];
				first_answer_ns?: (number | null)[];
				last_event_ns?: (number | null)[];
				end_ns?: (number | null)[];
				endpoint?: (number | null)[];
				attempts?: (number | null)[];
				status?: (number | null)[];
				n_events?: (number | null)[];
				n_reasoning?: (number | null)[];
				cached_tokens?: (number | null)[];
				reasoning_tokens?: (number | null)[];
				answer_bytes?: (number | null)[];
				priority?: (number | null)[];
				correctness?: (number | null)[];
				due_s?: (number | null)[];
				failure?: (string | null)[] | null;
			};
		};
		[key: string]: unknown;
	} | null;
	trust: {
		verdict: 'VALID' | 'DEGRADED' | 'INVALID' | null;
		verdicts: {
			[key: string]: unknown;
		} | null;
		notes: {
			code: string;
			text: string;
		}[];
		reasons: {
			level: string;
			code: string;
			spoils?: string[];
			text: string;
		}[];
		error_budget: {
			stamp_source: string;
			requests_user_stamped: number;
			client_lag_ms: {
				n: number;
				mean: number | null;
				p50: number | null;
				p99: number | null;
				max: number | null;
			} | null;
			send_lag_ms: {
				n: number;
				mean: number | null;
				p50: number | null;
				p99: number | null;
				max: number | null;
			} | null;
			skew_ms: {
				n: number;
				mean: number | null;
				p50: number | null;
				p99: number | null;
				max: number | null;
			} | null;
			connect_ms: {
				n: number;
				mean: number | null;
				p50: number | null;
				p99: number | null;
				max: number | null;
			} | null;
			shared_read_share: number | null;
			not_one_token_share: number | null;
			usage_differs_share: number | null;
		} | null;
	} | null;
	system: {
		peak_gpu_memory_gb: number | null;
		avg_gpu_utilization: number | null;
		energy_j: number | null;
		j_per_token: number | null;
		tokens_per_s_per_w: number | null;
		hardware_info: {
			gpus: {
				index: number;
				name: string | null;
				uuid: string | null;
				vendor: 'nvidia' | 'amd';
				memory_bytes: number | null;
				driver: string | null;
				cuda: string | null;
				compute_capability: string | null;
				power_limit_w: number | null;
				sm_clock_max_mhz: number | null;
				memory_clock_max_mhz: number | null;
				numa: number | null;
				pci: string | null;
				mig_profile: string | null;
				links: string[];
			}[];
			gpu_note: string | null;
			cpu: {
				model: string | null;
				architecture: string | null;
				sockets: number | null;
				cores: number | null;
				threads: number | null;
				allowed: number | null;
				quota: number | null;
				governor: string | null;
				clock_mhz: number | null;
				clock_max_mhz: number | null;
				boost: boolean | null;
				numa_nodes: {
					node: number;
					cpus: string | null;
					memory_bytes: number | null;
				}[];
			};
			memory: {
				total_bytes: number | null;
				limit_bytes: number | null;
				swap_bytes: number | null;
				hugepages: string | null;
			};
			os: {
				kernel: string | null;
				name: string | null;
				libc: string | null;
			};
			network: {
				name: string;
				speed_mbit: number | null;
				driver: string | null;
				is_up: boolean;
			}[];
			rdma: string[];
			container: string | null;
			virtualization: string | null;
		} | null;
		power_mean_w?: number | null;
		power_before_w?: number | null;
		j_per_token_total?: number | null;
		gpus?: {
			index?: number;
			uuid?: string;
			name?: string;
			memory_total_gb?: number | null;
			memory_gb?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			utilization?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			memory_busy?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			sm_clock_mhz?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			memory_clock_mhz?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			power_w?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			temperature_c?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			sm_active?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			};
			tensor_active?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			};
			dram_active?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			};
			nvlink_sent_mb_per_s?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			};
			nvlink_received_mb_per_s?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			};
			pcie_sent_mb_per_s?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			};
			pcie_received_mb_per_s?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			};
			energy_j?: number | null;
			is_energy_counted?: boolean;
			power_before_w?: number | null;
		}[];
		host?: {
			cpus?: number | null;
			memory_total_gb?: number | null;
			cpus_busy?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			memory_gb?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			received_mb_per_s?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			sent_mb_per_s?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
		};
		processes?: {
			name?: string;
			pid?: number;
			cpu_s?: number | null;
			cpus_busy?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			rss_gb?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			threads?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
			processes?: {
				min?: number | null;
				mean?: number | null;
				max?: number | null;
			} | null;
		}[];
		telemetry?: {
			samples?: number;
			missed?: number | null;
			interval_s?: number | null;
			cpu_s?: number | null;
			share_of_a_core?: number | null;
		};
		not_watched?: string | null;
	};
	profiling: {
		enabled: boolean;
		tool: string | null;
		trace_file_path: string | null;
		trace_file_size_mb: number | null;
		traces: {
			path: string;
			bytes: number;
		}[];
	};
	environment: {
		profllm: string;
		build: string | null;
		libraries: {
			[key: string]: unknown;
		};
		server: {
			kind: string | null;
			version: string | null;
		};
		python: {
			version: string | null;
			packages: {
				[key: string]: unknown;
			};
		} | null;
		cuda: string | null;
		driver: string | null;
		variables: {
			[key: string]: unknown;
		};
	} | null;
	provenance: {
		engine_commit: string | null;
		branch: string | null;
		pr: string | null;
		build: string | null;
		trigger: string | null;
		[key: string]: unknown;
	};
	status: 'completed' | 'partial' | 'failed' | 'running';
	error: {
		stage: 'config' | 'allocate' | 'start' | 'ready' | 'benchmark' | 'collect';
		category: string | null;
		reason: string;
		log_tail: string | null;
	} | null;
	requirements?: {
		condition: string;
		outcome: 'passed' | 'failed' | 'unjudged';
		text: string;
	}[];
	warnings: string[];
	files: {
		folder: string | null;
		record: string | null;
		logs: string[];
	};
}

/** What `profllm run` writes of several. */
export interface SuiteDocument {
	schema_version: 1;
	suite: string | null;
	plan?: {
		[key: string]: unknown;
	};
	experiments: ExperimentDocument[];
	lacking?: string[];
	search?: {
		[key: string]: unknown;
	};
}
